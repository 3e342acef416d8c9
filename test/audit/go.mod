module github.com/docent-zk/docent/test/audit

go 1.25.0

require github.com/google/licensecheck v0.3.1

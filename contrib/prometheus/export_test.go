package promdocent

// NameOf is the name of an instrument in Prometheus.
var NameOf = nameOf

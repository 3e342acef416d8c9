package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/docent-zk/docent/framework"
)

const defaultSessionTimeout = 30 * time.Second

// connectionFlags returns the flags that say how to reach the servers. All but the last two can also
// come from the environment, as DOCENT_CONNECT and so on, and from the configuration file.
func connectionFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "connect", Usage: "the servers, `HOST:PORT,.../CHROOT`", Sources: env("CONNECT"),
		},
		&cli.DurationFlag{
			Name: "session-timeout", Usage: "the session `TIMEOUT` to ask the servers for",
			Value: defaultSessionTimeout, Sources: env("SESSION_TIMEOUT"),
		},
		&cli.BoolFlag{Name: "tls", Usage: "connect with TLS", Sources: env("TLS")},
		&cli.StringFlag{
			Name: "tls-ca", Usage: "a `FILE` with the certificates of the authorities to trust, for --tls",
			Sources: env("TLS_CA"),
		},
		&cli.StringFlag{
			Name: "tls-cert", Usage: "a `FILE` with the client's certificate, for --tls", Sources: env("TLS_CERT"),
		},
		&cli.StringFlag{Name: "tls-key", Usage: "a `FILE` with its key", Sources: env("TLS_KEY")},
		&cli.StringFlag{
			Name: "digest-file", Usage: "a `FILE` with user:password, for the scheme digest",
			Sources: env("DIGEST_FILE"),
		},
		&cli.StringFlag{
			Name:    "config",
			Usage:   "a configuration `FILE` (default: docent/config.json in the user's directory for them)",
			Sources: env("CONFIG"),
		},
		&cli.BoolFlag{Name: "verbose", Usage: "log what the client does, on standard error"},
	}
}

func env(name string) cli.ValueSourceChain { return cli.EnvVars("DOCENT_" + name) }

// configurable are the names of the flags that the configuration file may contain.
var configurable = []string{"connect", "session-timeout", "tls", "tls-ca", "tls-cert", "tls-key", "digest-file"}

// loadConfig sets the flags that are not set yet from the configuration file.
func loadConfig(c *cli.Command) error {
	name := c.String("config")
	if name == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return nil // there is no home directory
		}
		name = filepath.Join(dir, "docent", "config.json")
	}
	content, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && !c.IsSet("config") {
		return nil
	}
	if err != nil {
		return usagef("configuration: %w", err)
	}
	values := map[string]any{}
	if err := json.Unmarshal(content, &values); err != nil {
		return usagef("configuration %s: want a JSON object: %w", name, err)
	}
	for key, value := range values {
		text, isText := value.(string)
		if on, isBool := value.(bool); isBool {
			text, isText = map[bool]string{true: "true", false: "false"}[on], true
		}
		switch {
		case !slices.Contains(configurable, key):
			return usagef("configuration %s: %q is not one of %s", name, key, strings.Join(configurable, ", "))
		case !isText:
			return usagef("configuration %s: %q: want a text, or true or false", name, key)
		case c.IsSet(key):
			continue
		}
		if err := c.Set(key, text); err != nil {
			return usagef("configuration %s: %q: %w", name, key, err)
		}
	}
	return nil
}

// newClient returns a client by the flags, the environment and the configuration file.
func newClient(c *cli.Command) (*framework.Client, error) {
	if err := loadConfig(c); err != nil {
		return nil, err
	}
	connect := c.String("connect")
	if connect == "" {
		return nil, usagef("no servers: give --connect or set DOCENT_CONNECT, as zk1:2181,zk2:2181,zk3:2181")
	}
	level := slog.LevelWarn
	if c.Bool("verbose") {
		level = slog.LevelDebug
	}
	logger := slog.New(slog.NewTextHandler(c.Root().ErrWriter, &slog.HandlerOptions{Level: level}))
	opts := []framework.Option{
		framework.WithSessionTimeout(c.Duration("session-timeout")), framework.WithSlog(logger),
	}
	secrets, err := credentials(c)
	if err != nil {
		return nil, err
	}
	client, err := framework.New(connect, append(opts, secrets...)...)
	if err != nil {
		return nil, usageError{err}
	}
	return client, nil
}

// credentials returns the options for TLS and digests.
func credentials(c *cli.Command) (opts []framework.Option, err error) {
	if c.Bool("tls") {
		settings, err := tlsSettings(c)
		if err != nil {
			return nil, err
		}
		opts = append(opts, framework.WithTLS(settings))
	} else if c.String("tls-ca")+c.String("tls-cert")+c.String("tls-key") != "" {
		return nil, usagef("--tls-ca, --tls-cert and --tls-key need --tls")
	}
	if name := c.String("digest-file"); name != "" {
		digest, err := os.ReadFile(name)
		if err != nil {
			return nil, usagef("--digest-file: %w", err)
		}
		opts = append(opts, framework.WithAuth("digest", bytes.TrimRight(digest, "\r\n")))
	}
	return opts, nil
}

func tlsSettings(c *cli.Command) (*tls.Config, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if name := c.String("tls-ca"); name != "" {
		certificates, err := os.ReadFile(name)
		if err != nil {
			return nil, usagef("--tls-ca: %w", err)
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(certificates) {
			return nil, usagef("--tls-ca %s: no certificate in PEM form", name)
		}
	}
	certificate, key := c.String("tls-cert"), c.String("tls-key")
	switch {
	case certificate == "" && key == "":
		return settings, nil
	case certificate == "" || key == "":
		return nil, usagef("--tls-cert and --tls-key need each other")
	}
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, usagef("--tls-cert, --tls-key: %w", err)
	}
	settings.Certificates = []tls.Certificate{pair}
	return settings, nil
}

package artifactstore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const good = `
stores:
- name: archive
  endpoint: https://s3.example.com
  bucket: berth-artifacts
  accessKeyFile: /a
  secretKeyFile: /s
`

func TestConfigDefaults(t *testing.T) {
	t.Parallel()
	configs, err := parse([]byte(good))
	if err != nil || len(configs) != 1 {
		t.Fatalf("%+v, %v", configs, err)
	}
	if c := configs[0]; c.Region != DefaultRegion || c.Expiry != Duration(DefaultExpiry) || c.MaxBytes != 0 || c.Prefix != "" {
		t.Errorf("%+v", c)
	}
}

// Each fault is told with its store and field, and no URL is repeated.
func TestConfigFaults(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]string{
		"":                        "",
		"expiry: 1s":              "",
		"expiry: 168h":            "",
		"expiry: 0s":              `expiry: 0s: want from 1s`,
		"expiry: 999ms":           `store "archive": expiry: 999ms: want from 1s`,
		"expiry: 168h1s":          `store "archive": expiry: 168h0m1s: want from 1s`,
		"expiry: -1h":             `expiry: -1h0m0s: want from 1s`,
		"expiry: soon":            `expiry: "soon" is no duration`,
		"expiry: 60":              `expiry: want a duration in quotation marks`,
		"maxBytes: 1":             "",
		"maxBytes: 5497558138880": "",
		"maxBytes: 5497558138881": "maxBytes: 5497558138881: want from 1",
		"maxBytes: -1":            "maxBytes: -1: want from 1",
		"prefix: a/":              "",
		"prefix: a/b.c-d_e/":      "",
		"prefix: a":               `prefix: "a": want`,
		"prefix: /a/":             `prefix: "/a/": want`,
		"prefix: a//":             `prefix: "a//": want`,
		"prefix: ../":             `prefix: "../": want`,
		"region: eu central":      `region: "eu central"`,
		"accesKey: x":             `unknown field "accesKey"`,
		"secretAccessKey: hush":   `unknown field "secretAccessKey"`,
		"insecure: perhaps":       "insecure",
		"sessionTokenFile: /t":    "",
		"prefix: " + strings.Repeat("a", 256) + "/": "prefix",
		"caFile: /ca": "",
	} {
		_, err := parse([]byte(good + "  " + change + "\n"))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", change, err, want)
		}
	}
	for change, want := range map[string]string{
		"endpoint: ''":                              "endpoint: missing",
		"endpoint: s3.example.com":                  "endpoint: not a URL with a host",
		"endpoint: http://s3.example.com":           "endpoint: http would send files unencrypted",
		"endpoint: ftp://s3.example.com":            "endpoint: want the scheme https",
		"endpoint: https://key:hush@s3.example.com": "endpoint: holds credentials",
		"endpoint: https://s3.example.com/bucket":   "endpoint: has more than scheme, host and port",
		"endpoint: https://s3.example.com?x":        "endpoint: has more than scheme, host and port",
		"endpoint: 'https://[hush'":                 "endpoint: not a URL",
	} {
		_, err := parse([]byte(strings.Replace(good, "endpoint: https://s3.example.com", change, 1)))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, want %q", change, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                                       "stores is empty",
		"stores: []":                             "stores is empty",
		"store: []":                              `unknown field "store"`,
		"stores: {a: b}":                         "want one field, stores, with a list",
		"\t":                                     "not YAML",
		"stores: [{name: a}, {name: b}]":         `store "b": endpoint: missing`,
		"stores: [{bucket: b}]":                  `stores[0]: name: ""`,
		"stores: []\nstores: []":                 "not YAML",
		good + good[len("\nstores:\n"):]:         `store "archive": name: another store has it`,
		strings.Replace(good, "archive", "A", 1): `store "A": name: "A": want 1 to 63`,
		strings.Replace(good, "berth-artifacts", "B!", 1):     `bucket: "B!"`,
		strings.Replace(good, "  accessKeyFile: /a\n", "", 1): "accessKeyFile: missing",
	} {
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// What a configuration names must be there when the gateway starts.
func TestFilesThatAreMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "stores.yaml")
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("no file: %v", err)
	}
	write(t, path, "stores: 1")
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a bad file: %v", err)
	}
	c := Config{Name: "archive", Endpoint: "https://s3.example.com", Bucket: "b"}
	keyFiles(t, &c, "access", "secret-of-the-test")
	for name, text := range map[string]string{"empty": "", "two": "a b", "lines": "a\nb", "long": strings.Repeat("a", maxKey+1), "binary": "a\x00"} {
		write(t, c.SecretKeyFile, text)
		_, err := New([]Config{c}, Options{Now: time.Now})
		if err == nil || !strings.Contains(err.Error(), `artifact store "archive": credentials: secretKeyFile: `+c.SecretKeyFile+": want a key alone") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Remove(c.SecretKeyFile); err != nil {
		t.Fatal(err)
	}
	if _, err := New([]Config{c}, Options{Now: time.Now}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no key: %v", err)
	}
	write(t, c.SecretKeyFile, "secret-of-the-test")
	c.CAFile = path
	if _, err := New([]Config{c}, Options{Now: time.Now}); err == nil || !strings.Contains(err.Error(), "caFile: "+path+": no certificate") {
		t.Errorf("no certificate: %v", err)
	}
	c.CAFile += ".pem"
	if _, err := New([]Config{c}, Options{Now: time.Now}); err == nil || !strings.Contains(err.Error(), "caFile: open") {
		t.Errorf("no CA file: %v", err)
	}
}

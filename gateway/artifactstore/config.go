package artifactstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/s3utils"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/gateway/session"
)

// Bounds and defaults of a store's configuration.
const (
	DefaultExpiry = 24 * time.Hour
	MaxExpiry     = 7 * 24 * time.Hour
	DefaultRegion = "us-east-1"
	// maxObject is the largest object of S3, in bytes.
	maxObject = 5 << 40
	maxPrefix = 256
)

// Config is one store, as the configuration file has it.
type Config struct {
	// Name is what templates call it: a DNS-1123 label.
	Name string `json:"name"`
	// Endpoint is the URL of the S3 API: scheme, host and port.
	Endpoint string `json:"endpoint"`
	// Insecure permits an http endpoint.
	Insecure bool   `json:"insecure"`
	Region   string `json:"region"`
	Bucket   string `json:"bucket"`
	// Prefix begins the key of each object.
	Prefix string `json:"prefix"`
	// AccessKeyFile, SecretKeyFile and, for temporary ones, SessionTokenFile hold
	// the credentials, and nothing else. They are read for each request.
	AccessKeyFile    string `json:"accessKeyFile"`
	SecretKeyFile    string `json:"secretKeyFile"`
	SessionTokenFile string `json:"sessionTokenFile"`
	// CAFile holds the certificates, in PEM, of who may have signed the endpoint's;
	// without it the system's hold.
	CAFile string `json:"caFile"`
	// Expiry is how long an object can be read.
	Expiry Duration `json:"expiry"`
	// MaxBytes is the largest file that is taken; 0 is no limit of the store's own.
	MaxBytes int64 `json:"maxBytes"`
}

// Duration is written as time.ParseDuration reads it.
type Duration time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return errors.New("expiry: want a duration in quotation marks, such as \"24h\"")
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("expiry: %q is no duration: write one such as 24h", s)
	}
	if parsed == 0 { // which would be the default
		return fmt.Errorf("expiry: %s: want from 1s to %s", s, MaxExpiry)
	}
	*d = Duration(parsed)
	return nil
}

// Load reads the configuration file at path. Its error has every fault, each with
// file, store and field.
func Load(path string) ([]Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("artifact stores: %w", err)
	}
	configs, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("artifact stores: %s: %w", path, err)
	}
	return configs, nil
}

// parse reads each store by itself, so that what is wrong can be told by its name.
func parse(data []byte) ([]Config, error) {
	encoded, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, fmt.Errorf("not YAML: %w", err)
	}
	var file struct {
		Stores []json.RawMessage `json:"stores"`
	}
	if err := strict(encoded, &file); err != nil {
		return nil, fmt.Errorf("want one field, stores, with a list: %w", err)
	}
	if len(file.Stores) == 0 {
		return nil, errors.New("stores is empty: list one, or leave --artifact-stores out")
	}
	configs := make([]Config, len(file.Stores))
	names := make(map[string]bool)
	var errs []error
	for i, raw := range file.Stores {
		c := &configs[i]
		err := strict(raw, c)
		where := fmt.Sprintf("store %q", c.Name)
		if c.Name == "" {
			where = fmt.Sprintf("stores[%d]", i)
		}
		if err == nil {
			err = c.complete()
		}
		if err == nil && names[c.Name] {
			err = errors.New("name: another store has it: give each one of its own")
		}
		names[c.Name] = true
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", where, err))
		}
	}
	return configs, errors.Join(errs...)
}

// strict refuses fields that v doesn't have.
func strict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// complete fills in defaults and returns every fault.
func (c *Config) complete() error {
	if c.Region == "" {
		c.Region = DefaultRegion
	}
	if c.Expiry == 0 {
		c.Expiry = Duration(DefaultExpiry)
	}
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !session.ValidID(c.Name) {
		fault("name: %q: want 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit", c.Name)
	}
	if err := c.checkEndpoint(); err != nil {
		fault("endpoint: %w", err)
	}
	if !plain.MatchString(c.Region) {
		fault("region: %q: want letters, digits and -", c.Region)
	}
	if err := s3utils.CheckValidBucketNameStrict(c.Bucket); err != nil {
		fault("bucket: %q: %w", c.Bucket, err)
	}
	if !prefix.MatchString(c.Prefix) || len(c.Prefix) > maxPrefix {
		fault("prefix: %q: want nothing, or at most %d of letters, digits, -, _ and . in parts that each end with / and begin with none of the last two", c.Prefix, maxPrefix)
	}
	for field, file := range map[string]string{"accessKeyFile": c.AccessKeyFile, "secretKeyFile": c.SecretKeyFile} {
		if file == "" {
			fault("%s: missing: name a file that holds the key, such as one of a mounted Secret", field)
		}
	}
	if d := time.Duration(c.Expiry); d < time.Second || d > MaxExpiry {
		fault("expiry: %s: want from 1s to %s", d, MaxExpiry)
	}
	if c.MaxBytes < 0 || c.MaxBytes > maxObject {
		fault("maxBytes: %d: want from 1 to %d, or nothing for no limit", c.MaxBytes, int64(maxObject))
	}
	return errors.Join(errs...)
}

var (
	plain  = regexp.MustCompile(`^[A-Za-z0-9-]{1,63}$`)
	prefix = regexp.MustCompile(`^([A-Za-z0-9-][A-Za-z0-9._-]*/)*$`)
)

// checkEndpoint never repeats the URL: who put a password into it would find it
// in a log.
func (c *Config) checkEndpoint() error {
	u, err := url.Parse(c.Endpoint)
	switch {
	case c.Endpoint == "":
		return errors.New("missing: want the URL of the S3 API, such as https://s3.example.com")
	case err != nil || u.Hostname() == "":
		return errors.New("not a URL with a host: want one such as https://s3.example.com")
	case u.User != nil:
		return errors.New("holds credentials: put them into accessKeyFile and secretKeyFile")
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return errors.New("has more than scheme, host and port: the bucket and the prefix are fields of their own")
	case u.Scheme == "http" && !c.Insecure:
		return errors.New("http would send files unencrypted: use https, or say insecure: true")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("want the scheme https")
	case c.CAFile != "" && u.Scheme == "http":
		return errors.New("http has no certificate for caFile to check: use https, or leave caFile out")
	}
	return nil
}

package artifactstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
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

package artifactstore

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"time"

	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/berth-dev/berth/gateway/session"
)

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

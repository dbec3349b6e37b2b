package v1alpha1

import (
	"fmt"
	"time"
)

// Duration is a length of time as Go writes it, such as "90s" or "1h30m". It is
// a string, not a metav1.Duration, so that the API server can refuse what does
// not parse: one stored "banana" would keep every informer from decoding the list.
//
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) > duration('0s')",message="must be a positive duration such as 90s, 30m or 1h30m"
type Duration string

// Parse gives the time.Duration, which is positive. What the API server has
// admitted always parses.
func (d Duration) Parse() (time.Duration, error) {
	parsed, err := time.ParseDuration(string(d))
	if err != nil {
		return 0, err
	}
	if parsed <= 0 {
		return 0, fmt.Errorf("duration %q is not positive", string(d))
	}
	return parsed, nil
}

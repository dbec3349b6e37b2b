package httpapi

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/background"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Forms of the parameters. None needs an escape, so none is known.
var (
	offsetForm = regexp.MustCompile(`^-?[0-9]{1,18}$`)
	limitForm  = regexp.MustCompile(`^[0-9]{1,9}$`)
	waitForm   = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,9})?$`)
)

// parseOutputQuery reads the query of GET /v1/processes/{id}/output. It returns
// false for one that holds anything else, or anything twice.
func parseOutputQuery(raw string) (background.Query, bool) {
	q := background.Query{Limit: wire.DefaultOutputChunk}
	if raw == "" {
		return q, true
	}
	seen := map[string]bool{}
	for parameter := range strings.SplitSeq(raw, "&") {
		name, value, _ := strings.Cut(parameter, "=")
		if seen[name] || !setParameter(&q, name, value) {
			return background.Query{}, false
		}
		seen[name] = true
	}
	return q, true
}

// parseWait reads a value of waitForm: seconds, most at the most.
func parseWait(value string, most float64) (time.Duration, error) {
	seconds, err := strconv.ParseFloat(value, 64)
	return time.Duration(min(seconds, most) * float64(time.Second)), err
}

func setParameter(q *background.Query, name, value string) bool {
	var err error
	switch {
	case name == wire.OutputOffset && offsetForm.MatchString(value):
		q.Offset, err = strconv.ParseInt(value, 10, 64)
	case name == wire.OutputLimit && limitForm.MatchString(value):
		var limit int
		limit, err = strconv.Atoi(value)
		if limit > 0 {
			q.Limit = min(limit, wire.MaxOutputChunk)
		}
	case name == wire.OutputWait && waitForm.MatchString(value):
		q.Wait, err = parseWait(value, wire.MaxOutputWait)
	default:
		return false
	}
	return err == nil
}

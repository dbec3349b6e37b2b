package front

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/gateway/artifact"
)

var (
	// oneRange is a Range header that asks for one part from an offset on.
	oneRange = regexp.MustCompile(`^bytes=([0-9]{1,18})-([0-9]{1,18})?$`)
	// noBytes is one that asks for the last 0 bytes.
	noBytes = regexp.MustCompile(`^bytes=[ \t]*-[ \t]*0+[ \t]*$`)
)

// takeRange takes away a Range that is not served: one of HEAD has no meaning, one
// of another unit must be ignored (RFC 9110 §14.2), and one of several parts would
// be that many requests to an agent. It tells whether one is left. The unit's case
// says nothing (§14.1), but http.ServeContent wants it lower.
func takeRange(r *http.Request) bool {
	ranges := r.Header.Values("Range")
	if r.Method != http.MethodHead && len(ranges) == 1 {
		unit, set, ok := strings.Cut(ranges[0], "=")
		if ok && strings.EqualFold(unit, "bytes") && !strings.Contains(set, ",") {
			r.Header.Set("Range", "bytes="+set)
			return true
		}
	}
	r.Header.Del("Range")
	return false
}

// firstPart is what to open at first: just what will be sent, where the request
// alone says it; else one byte, which comes with all that is to be known.
func firstPart(r *http.Request) artifact.Part {
	facts := artifact.Part{Length: 1}
	ranged := takeRange(r)
	conditional := false
	for _, name := range []string{"If-Match", "If-None-Match", "If-Range"} {
		conditional = conditional || len(r.Header.Values(name)) > 0
	}
	switch {
	case r.Method == http.MethodHead || conditional:
		return facts
	case !ranged:
		return artifact.Part{}
	}
	m := oneRange.FindStringSubmatch(r.Header.Get("Range"))
	if m == nil {
		return facts
	}
	first, _ := strconv.ParseInt(m[1], 10, 64) // 18 digits
	if m[2] == "" {
		return artifact.Part{Offset: first}
	}
	last, _ := strconv.ParseInt(m[2], 10, 64)
	if last < first {
		return facts
	}
	return artifact.Part{Offset: first, Length: last - first + 1}
}

// fitRange changes a Range that http.ServeContent would answer with an impossible
// Content-Range, once the size is known: the last 0 bytes begin at the end (RFC 9110
// §14.1.2), and of nothing the last ones are all of it.
func fitRange(r *http.Request, size int64) {
	switch text := r.Header.Get("Range"); {
	case noBytes.MatchString(text):
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", max(size, 1)))
	case size == 0:
		r.Header.Del("Range")
	}
}

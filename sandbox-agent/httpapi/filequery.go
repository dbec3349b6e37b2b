package httpapi

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/sandbox-agent/files"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// number is the form of the parameters that are numbers.
var number = regexp.MustCompile(`^[0-9]{1,18}$`)

// fileQuery is a query whose parameters are known, each given once at most.
type fileQuery struct {
	values url.Values
	bad    string // the first parameter that is malformed
}

func parseFileQuery(raw string, known ...string) (*fileQuery, *Refusal) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, badRequest("the query is malformed")
	}
	left := len(values)
	for _, name := range known {
		if given, ok := values[name]; ok {
			left--
			if len(given) != 1 {
				return nil, badRequest("the query has " + name + " more than once")
			}
		}
	}
	if left != 0 {
		return nil, badRequest("the query has a parameter that this route doesn't take; see docs/agent.md")
	}
	return &fileQuery{values: values}, nil
}

// number returns a parameter, at most limit, or otherwise if it is absent.
func (q *fileQuery) number(name string, otherwise, limit int64) int64 {
	if !q.values.Has(name) {
		return otherwise
	}
	value := q.values.Get(name)
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || !number.MatchString(value) {
		q.bad = name
		return otherwise
	}
	return min(n, limit)
}

func (q *fileQuery) refusal() *Refusal {
	switch {
	case q.bad == wire.ListHidden:
		return badRequest(q.bad + ": want true or false")
	case q.bad != "":
		return badRequest(q.bad + ": want a number, not negative")
	}
	return nil
}

// parsePathQuery reads the query of a route that takes a path alone.
func parsePathQuery(raw string) (string, *Refusal) {
	q, refusal := parseFileQuery(raw, wire.FileOf)
	if refusal != nil {
		return "", refusal
	}
	return q.needed(wire.FileOf)
}

// parseNameQuery reads the query of a route that takes a name alone.
func parseNameQuery(raw string) (string, *Refusal) {
	q, refusal := parseFileQuery(raw, wire.FileName)
	if refusal != nil {
		return "", refusal
	}
	return q.needed(wire.FileName)
}

func (q *fileQuery) needed(name string) (string, *Refusal) {
	if !q.values.Has(name) {
		return "", badRequest("want the query ?" + name + "=" + strings.ToUpper(name))
	}
	return q.values.Get(name), nil
}

// readQuery is that of GET /v1/files. Without lines, it asks for bytes.
type readQuery struct {
	path  string
	lines *files.Lines
}

const noBound = int64(1) << 60

func parseReadQuery(raw string) (r readQuery, refusal *Refusal) {
	q, refusal := parseFileQuery(raw, wire.FileOf, wire.FileLine, wire.FileLines, wire.FileLimit)
	if refusal != nil {
		return r, refusal
	}
	if r.path, refusal = q.needed(wire.FileOf); refusal != nil {
		return r, refusal
	}
	if len(q.values) == 1 {
		return r, nil
	}
	r.lines = &files.Lines{
		First: max(1, q.number(wire.FileLine, 1, noBound)),
		Count: q.number(wire.FileLines, 0, noBound),
		Limit: int(q.number(wire.FileLimit, wire.DefaultFileRead, wire.MaxFileRead)),
	}
	if r.lines.Limit == 0 {
		r.lines.Limit = wire.DefaultFileRead
	}
	return r, q.refusal()
}

func parseListQuery(raw string) (path string, l files.Listing, refusal *Refusal) {
	q, refusal := parseFileQuery(raw, wire.FileOf, wire.ListDepth, wire.ListGlob, wire.ListLimit, wire.ListHidden, wire.ListAfter)
	if refusal != nil {
		return "", l, refusal
	}
	if path = "."; q.values.Has(wire.FileOf) {
		path = q.values.Get(wire.FileOf)
	}
	l = files.Listing{
		Depth: int(q.number(wire.ListDepth, 0, wire.MaxListDepth)),
		Glob:  q.values.Get(wire.ListGlob),
		Limit: int(q.number(wire.ListLimit, wire.DefaultListEntries, wire.MaxListEntries)),
		After: q.values.Get(wire.ListAfter),
	}
	if l.Limit == 0 {
		l.Limit = wire.DefaultListEntries
	}
	switch q.values.Get(wire.ListHidden) {
	case "", "false":
	case "true":
		l.Hidden = true
	default:
		q.bad = wire.ListHidden
	}
	return path, l, q.refusal()
}

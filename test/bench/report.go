package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// row is one measure as bench.json has it.
type row struct {
	// ID is the measure's in the list of goals, P1 to P8, or files; it may repeat.
	ID string `json:"id"`
	// Measure says in words what Value is, or is the ratio of.
	Measure string  `json:"measure"`
	Value   float64 `json:"value"`
	// Unit of Value and Goal; a ratio has none.
	Unit string `json:"unit,omitempty"`
	// Goal is a comparison with a number, such as "<= 0.8".
	Goal string `json:"goal"`
	OK   bool   `json:"ok"`
}

// result is a row with the figures behind the ratio, for the page.
type result struct {
	row
	ours, theirs string
}

// ratioOfMedians compares two sets of samples; the goal is an upper bound.
func ratioOfMedians(id, ours, theirs string, goal float64, a, b samples) result {
	return ratio(id, ours+", p50", theirs+", p50", goal, a.percentile(50), b.percentile(50), a, b)
}

// ratioOfMeans is for samples whose distribution has more than one peak: between
// them a median jumps.
func ratioOfMeans(id, ours, theirs string, goal float64, a, b samples) result {
	return ratio(id, ours+", mean", theirs+", mean", goal, a.mean(), b.mean(), a, b)
}

func ratio(id, ours, theirs string, goal float64, our, their time.Duration, a, b samples) result {
	value := our.Seconds() / their.Seconds()
	return result{
		row: row{
			ID: id, Measure: ours + ", against " + theirs,
			Value: value, Goal: fmt.Sprintf("<= %g", goal), OK: value <= goal,
		},
		ours: a.summary(), theirs: b.summary(),
	}
}

// rates compares two rates; the goal is a lower bound.
func rates(id, measure string, goal, our, their float64, unit string) result {
	value := our / their
	return result{
		row:    row{ID: id, Measure: measure, Value: value, Goal: fmt.Sprintf(">= %g", goal), OK: value >= goal},
		ours:   fmt.Sprintf("%.0f %s", our, unit),
		theirs: fmt.Sprintf("%.0f %s", their, unit),
	}
}

// size is a figure of its own, in MiB; the goal is an upper bound.
func size(id, measure string, goal, bytes float64) result {
	value := bytes / (1 << 20)
	return result{row: row{ID: id, Measure: measure, Value: value, Unit: "MiB", Goal: fmt.Sprintf("<= %.3g", goal), OK: value <= goal}}
}

func (s samples) summary() string {
	return fmt.Sprintf("mean %s, p50 %s, p99 %s, n = %d",
		milliseconds(s.mean()), milliseconds(s.percentile(50)), milliseconds(s.percentile(99)), len(s))
}

func milliseconds(d time.Duration) string {
	if d >= 100*time.Millisecond {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.3g ms", d.Seconds()*1000)
}

// line is the result for the terminal.
func (r result) line() string {
	verdict := "ok"
	if !r.OK {
		verdict = "MISSED"
	}
	line := fmt.Sprintf("%s  %-6s  %.4g%s  (goal %s)  %s", r.ID, verdict, r.Value, r.unit(), r.Goal, r.Measure)
	if r.theirs != "" {
		line += fmt.Sprintf("\n            %s against %s", r.ours, r.theirs)
	}
	return line
}

// unit is what follows the value.
func (r result) unit() string {
	if r.Unit == "" {
		return ""
	}
	return " " + r.Unit
}

func writeReports(options options, b *bench, results []result, spent *breakdown) error {
	rows := make([]row, 0, len(results))
	for _, r := range results {
		rows = append(rows, r.row)
	}
	encoded, err := encode(rows)
	if err != nil {
		return err
	}
	if err := os.WriteFile(options.json, encoded, 0o644); err != nil {
		return err
	}
	version, err := b.ServerVersion()
	if err != nil {
		return err
	}
	return os.WriteFile(options.page, page(machine(), version, results, spent), 0o644)
}

// encode gives one row per line and leaves < and > as they are.
func encode(rows []row) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(rows)
	return out.Bytes(), err
}

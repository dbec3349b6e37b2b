package mcpserver

import (
	"encoding/json"
	"math"
)

// whole is an integer as JSON Schema means it: 60, 60.0 and 6e1 are the same.
// What is beyond an int32 is cut to it; every limit is far below.
type whole int

// UnmarshalJSON implements json.Unmarshaler.
func (w *whole) UnmarshalJSON(data []byte) error {
	n, err := integer(data, math.MinInt32, math.MaxInt32)
	*w = whole(n)
	return err
}

// offset is a whole for positions in output, of which there may be more. It is
// exact up to 2^53, as numbers of JSON are.
type offset int64

// UnmarshalJSON implements json.Unmarshaler.
func (o *offset) UnmarshalJSON(data []byte) error {
	n, err := integer(data, -1<<53, 1<<53)
	*o = offset(n)
	return err
}

// integer reads a number that the schema has found to be whole.
func integer(data []byte, least, most float64) (int64, error) {
	var f float64
	if err := json.Unmarshal(data, &f); err != nil {
		return 0, err
	}
	return int64(min(max(f, least), most)), nil
}

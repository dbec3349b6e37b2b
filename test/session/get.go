package session

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
)

// URIPrefix comes before an artifact's token in its URI.
const URIPrefix = "artifact://berth/"

// Get reads an artifact, which its URI names, with GET /artifacts/{token}, or with
// header a part of it. What the gateway refused is a *Refusal. The caller closes
// the answer's body.
func Get(ctx context.Context, target Target, uri string, header http.Header) (*http.Response, error) {
	from := "http://" + target.Address + "/artifacts/" + strings.TrimPrefix(uri, URIPrefix)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(request.Header, header)
	authorize(request, target)
	if target.ID != "" {
		request.Header.Set(Header, target.ID)
	}
	response, err := plain.Do(request)
	if err != nil {
		return nil, fmt.Errorf("get an artifact: %w", err)
	}
	if response.StatusCode/100 != 2 {
		defer response.Body.Close()
		return nil, refusal(response)
	}
	return response, nil
}

package session

import (
	"context"
	"fmt"
	"net/http"
)

// End deletes the session of the target and everything in it, with DELETE
// /sessions/{id}. It gives the HTTP status.
func End(ctx context.Context, target Target) (status int, err error) {
	url := "http://" + target.Address + "/sessions/" + target.ID
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, url, nil)
	if err != nil {
		return 0, err
	}
	authorize(request, target)
	response, err := plain.Do(request)
	if err != nil {
		return 0, fmt.Errorf("delete session %s: %w", target.ID, err)
	}
	return response.StatusCode, response.Body.Close()
}

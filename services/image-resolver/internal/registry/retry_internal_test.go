package registry

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	tests := map[string]struct {
		reason, value, date string
		want                time.Duration
	}{
		"none":           {"nothing is asked for", "", "", 0},
		"seconds":        {"the usual form", "7", "", 7 * time.Second},
		"spaces":         {"some write them", " 7 ", "", 7 * time.Second},
		"negative":       {"no number of seconds", "-7", "", 0},
		"fraction":       {"no number of seconds", "0.5", "", 0},
		"very long":      {"a day is as good as for ever", "100000000", "", 24 * time.Hour},
		"date":           {"the other form", date(time.Minute), "", time.Minute},
		"date in a year": {"a day is as good as for ever", date(365 * 24 * time.Hour), "", 24 * time.Hour},
		"past date":      {"that is over", date(-time.Minute), "", 0},
		"other clock":    {"dates are by the sender's clock", date(time.Hour), date(time.Hour - time.Minute), time.Minute},
		"garbage":        {"nothing is asked for", "soon", "", 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			header := http.Header{"Retry-After": {tc.value}, "Date": {tc.date}}
			if got := retryAfter(header, now); got != tc.want {
				t.Errorf("%v, want %v: %s", got, tc.want, tc.reason)
			}
		})
	}
}

// Package pods tests functions in pods, through the whole system: its services
// deployed as pods, each by itself and all in one process.
package pods

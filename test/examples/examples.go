// Package examples tests how the scripts in examples/ start and end. That they render what
// they should, `make demo` and the tests in e2e/deploy see.
package examples

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
)

// throughputGoal is the minimum ratio of the exec evaluator's throughput to the throughput of shells that run the same
// program.
const throughputGoal = 1.25

// throughput compares 8 concurrent callers of the exec evaluator, which runs functions as local processes, with 8
// shells that run the program in a loop.
func (b *bench) throughput(ctx context.Context) error {
	s, err := b.startGateway(ctx)
	if err != nil {
		return err
	}
	defer s.stop()
	shells := "shell:" + filepath.Join(b.functions, b.function)
	figures, err := b.loadgen(ctx, "--items", "1", "--callers", "8", "--target", "shells="+shells,
		"--target", "exec="+s.conn.Target())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(b.out, "%s\nThe goal for evaluations in a second is %v times those of the shells.\n",
		figures, throughputGoal)
	return err
}

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/countersign-mcp/countersign/test/benchmark/load"
)

// contestant is something that is measured against others.
type contestant struct {
	name string
	// processes are those whose processor time counts; none for what runs here.
	processes []*process
	// goroutines call at once.
	goroutines int
	// call makes one call.
	call func(goroutine int) error
}

// score is what one contestant did in one round, or the median of several rounds.
type score struct {
	// perSecond is how many calls there were in a second.
	perSecond float64
	// processor is the processor time of one call, in all its processes.
	processor time.Duration
}

// contest measures contestants in turns, so that what else the machine does falls
// on all of them, and returns the median of each.
func contest(contestants []contestant, rounds int, duration time.Duration) ([]score, error) {
	scores := make([][]score, len(contestants))
	for round := range rounds + 1 {
		for i, c := range contestants {
			taken, err := c.measure(duration)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			if round > 0 { // the first warms up
				scores[i] = append(scores[i], taken)
			}
		}
	}
	medians := make([]score, len(contestants))
	for i, taken := range scores {
		medians[i] = score{
			perSecond: median(taken, func(s score) float64 { return s.perSecond }),
			processor: median(taken, func(s score) time.Duration { return s.processor }),
		}
	}
	return medians, nil
}

func (c contestant) measure(duration time.Duration) (score, error) {
	before, err := processorTime(c.processes)
	if err != nil {
		return score{}, err
	}
	calls, took, err := load.Run(c.goroutines, duration, c.call)
	if err != nil {
		return score{}, err
	}
	after, err := processorTime(c.processes)
	return score{perSecond: float64(calls) / took.Seconds(), processor: (after - before) / time.Duration(calls)}, err
}

func median[T float64 | time.Duration](scores []score, of func(score) T) T {
	values := make([]T, len(scores))
	for i, s := range scores {
		values[i] = of(s)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// callers are connections to one server, one for each goroutine.
type callers []*load.Connection

func dial(address string, count int) (callers, error) {
	c := make(callers, count)
	for i := range c {
		var err error
		if c[i], err = load.Dial(address); err != nil {
			return nil, err
		}
	}
	return c, nil
}

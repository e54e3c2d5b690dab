package ballast

import (
	"runtime"
	"runtime/metrics"
	"testing"
)

// goal is how large the heap becomes before it is collected.
func goal() uint64 {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func TestBallastRaisesTheGoalUnlessTheOperatorHasDecided(t *testing.T) {
	for _, variable := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv("GOGC", "")
			t.Setenv("GOMEMLIMIT", "")
			t.Setenv(variable, "200")
			Take()
			if block != nil {
				t.Error("there is ballast")
			}
		})
	}
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	before := goal()
	Take()
	if after := goal(); after < 2*Size || before >= 2*Size {
		t.Errorf("the goal was %d bytes and is %d with a ballast of %d", before, after, Size)
	}
	runtime.KeepAlive(block)
}

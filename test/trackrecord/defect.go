package main

// defect is a defect that docent had. A patch takes its mend back.
type defect struct {
	name    string // of the patch
	text    string // what a user met
	found   way    // how it was found
	commit  string // of the mend
	module  string // the folder of the module; empty: that at the root
	folder  string // of the package with the tests
	tests   string // a pattern for go test -run
	says    string // the output of the failed tests contains it
	seeds   string // of simulations; empty: as many as by default
	servers string // of ZOOKEEPER; empty: the tests run in process
}

// way is a way in which a defect was found.
type way string

const (
	simulated  way = "simulation"
	besieged   way = "siege"
	tried      way = "trial"
	onServers  way = "real servers"
	attacked   way = "attack"
	hostile    way = "hostile server"
	read       way = "reading"
	contracted way = "contract"
	compared   way = "other suites"
)

// ways say what each way means, in the order of the page.
var ways = []struct {
	way   way
	means string
}{
	{simulated, "random faults in virtual time, on the in-process server"},
	{besieged, "hours of random faults on real servers, and a check of what is left"},
	{tried, "programs ported from Curator, and others, written with the documentation alone"},
	{attacked, "a test that was written to break one guarantee"},
	{onServers, "a workload on real servers, compared with what is promised"},
	{hostile, "a server that breaks the protocol"},
	{contracted, "the same tests for all locks, with faults at each step"},
	{compared, "the test suites of other clients of ZooKeeper, on the in-process server"},
	{read, "reading the code, and a test of what looked wrong"},
}

// environment returns the variables that the tests get.
func (d defect) environment() (env []string) {
	if d.seeds != "" {
		env = append(env, "ZKTEST_SEEDS="+d.seeds)
	}
	if d.servers != "" {
		env = append(env, "ZOOKEEPER="+d.servers)
	}
	return env
}

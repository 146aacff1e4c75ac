// SPDX-License-Identifier: Apache-2.0

package main

// named are mutations that tests did not notice once, and a test was written for each.
var named = []mutation{
	{
		Name: "the chain of evaluators goes on after Unavailable", Package: "services/gateway/internal/evaluation",
		Edits: []edit{{
			`fault\.Of\(err\) == fault\.NotFound`,
			`(fault.Of(err) == fault.NotFound || fault.Of(err) == fault.Unavailable)`,
		}},
	},
	{
		Name: "output is not counted in the memory budget", Package: "services/gateway/internal/frontdoor",
		Edits: []edit{{`(held\.Answer\(ctx, )int64\(len\(resp\.ResourceList\)\+len\(resp\.Log\)\)`, "${1}0"}},
	},
	{
		Name: "a request that leaves the queue does not admit the next", Package: "libs/membudget",
		Edits: []edit{{`(slices\.Delete\(\w+\.(?:waiting|queue), [^\n]*\n\s*)\w+\.admit\(\)[^\n]*`, "${1}"}},
	},
	{
		Name: "servers have no ReadHeaderTimeout", Package: "libs/serve",
		Edits: []edit{{`ReadHeaderTimeout:[^\n]*\n`, "\n"}},
	},
	{
		Name: "servers send no HTTP/2 pings", Package: "libs/serve",
		Edits: []edit{{`SendPingTimeout:[^\n]*\n`, "\n"}},
	},
	{
		Name: "health checks have no pace", Package: "libs/rpcserve",
		Edits: []edit{{`(healthBytes, flushes: true)\}`, "${1}, idles: true}"}},
	},
	{
		Name: "the alarm of the pace is not awaited", Package: "libs/pace",
		Edits: []edit{{`\n\s*<-m\.interrupted\b[^\n]*`, "\n"}}, Tests: []string{"./pace", "./rpcserve"},
	},
	{
		Name: "the text of a status is unbounded", Package: "libs/rpcfault",
		Edits: []edit{{`maxMessageBytes\)`, "1<<40)"}},
	},
	{
		Name: "the stderr of a detail is not UTF-8", Package: "libs/function",
		Edits: []edit{{`valid\((excerpt\.Middle\(f\.Stderr, \w+\))\)`, "${1}"}},
	},
	{
		Name: "a process's log is called its output", Package: "libs/fnproc",
		Edits: []edit{{`newCollector\("log"`, `newCollector("output"`}},
	},
	{
		Name: "the cap of the log is reported as that of the output", Package: "libs/function",
		Edits: []edit{{`err\.Stream == "log"`, `err.Stream == "no stream"`}},
	},
	{
		Name: "a process is killed after it was reaped", Package: "libs/fnproc",
		Edits: []edit{{`\n\s*p\.reaped = true\n`, "\n"}},
	},
	{
		Name: "a spare process may write without bounds", Package: "libs/fnproc",
		Edits: []edit{{`size > maxSpareBytes && (s\.end\(\))`, "size < 0 && ${1}"}},
	},
	{
		Name: "a program is not identified by its inode", Package: "libs/fnproc",
		Edits: []edit{{`inode: +stat\.Ino,`, ""}},
	},
	{
		Name: "a program is not identified by its change time", Package: "libs/fnproc",
		Edits: []edit{{`,\s*moved: +stat\.Ctim\b`, ""}},
	},
}

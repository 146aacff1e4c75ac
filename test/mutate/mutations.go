// SPDX-License-Identifier: Apache-2.0

package main

// named contains mutations that the tests once missed. By now, a test exists for each of these mutations.
var named = []mutation{
	{
		Name: "the chain of evaluators goes on after Unavailable", Package: "services/gateway/internal/evaluation",
		Edits: []edit{{
			`fault\.Of\(err\) == fault\.NotFound`,
			`(fault.Of(err) == fault.NotFound || fault.Of(err) == fault.Unavailable)`,
		}},
	},
	{
		Name: "output is not counted in the memory budget", Package: "services/gateway/internal/evalhandler",
		Edits: []edit{{`(reservation\.Answer\(ctx, )int64\(len\(resp\.ResourceList\)\+len\(resp\.Log\)\)`, "${1}0"}},
	},
	{
		Name: "a request that leaves the queue does not admit the next", Package: "libs/evalserve",
		Edits: []edit{{`b\.admitFitting\(\) // requests behind w[^\n]*`, ""}},
	},
	{
		Name: "a function may use all memory", Package: "libs/evalserve",
		Edits: []edit{{`u == nil \|\| u\.bytes == 0`, "true"}},
	},
	{
		Name: "an address may use all memory", Package: "libs/evalserve",
		Edits: []edit{{`\(peer == 0 \|\| `, "(true || "}},
	},
	{
		Name: "a stuck function keeps the memory of its address", Package: "libs/evalserve",
		Edits: []edit{{`!needed \|\| `, "true || needed || "}},
	},
	{
		Name: "requests are not claimed for their functions", Package: "services/gateway/internal/evalhandler",
		Edits: []edit{{`evalserve\.Of\(ctx\)\.Claim\(ctx, name\)`, "error(nil)"}},
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
		Edits: []edit{{`(responseBytes: healthBytes)\}`, "${1}, idles: true}"}},
	},
	{
		Name: "the alarm of the pace is not awaited", Package: "libs/slowclient",
		Edits: []edit{{`\n\s*<-m\.interrupted\b[^\n]*`, "\n"}}, Tests: []string{"./slowclient", "./rpcserve"},
	},
	{
		Name: "the text of a status is unbounded", Package: "libs/rpcfault",
		Edits: []edit{{`maxMessageBytes\)`, "1<<40)"}},
	},
	{
		Name: "the stderr of a detail is not UTF-8", Package: "libs/function",
		Edits: []edit{{`validUTF8\((excerpt\.Middle\(f\.Stderr, \w+\))\)`, "${1}"}},
	},
	{
		Name: "a process's log is called its output", Package: "libs/fnproc",
		Edits: []edit{{`newCollector\("log"`, `newCollector("output"`}},
	},
	{
		Name: "a process is killed after it was reaped", Package: "libs/fnproc",
		Edits: []edit{{`\n\s*p\.reaped = true\n`, "\n"}},
	},
	{
		Name: "a spare process may write without bounds", Package: "libs/fnproc",
		Edits: []edit{{`size > maxSpareBytes && (s\.retire\(\))`, "size < 0 && ${1}"}},
	},
	{
		Name: "a program is not identified by its inode", Package: "libs/fnproc",
		Edits: []edit{{`inode: +stat\.Ino, (size: stat\.Size, modified)`, "${1}"}},
	},
	{
		Name: "a program is not identified by its change time", Package: "libs/fnproc",
		Edits: []edit{{`,\s*moved: +stat\.Ctim\b`, ""}},
	},
	{
		Name: "a lease is kept whose client is gone at the grant", Package: "libs/lease",
		Edits: []edit{{`\n\s*lease\.Finish\(Abandoned, "the client was gone[^\n]*`, ""}},
	},
	{
		Name: "the end of a lease's stream has no bound", Package: "libs/lease",
		Edits: []edit{{`\n\s*timeout := time\.AfterFunc\(finishTimeout[^\n]*\n\s*defer timeout\.Stop\(\)`, ""}},
	},
	{
		Name: "plain HTTP is a way around a certificate", Package: "services/image-resolver/internal/registry",
		Edits: []edit{{`!isDistrust\(err\) && ctx`, "ctx"}},
	},
	{
		Name: "the policy is not asked", Package: "services/gateway/internal/nameresolver",
		Edits: []edit{{`(if err := r\.Policy\.Check\(name\); err != nil )`, "${1}&& false "}},
	},
	{
		Name: "an owner that DNS does not name is not counted as tried", Package: "services/gateway/internal/replicas",
		Edits: []edit{{`open\.Tried = append\(open\.Tried, owner\)`, "_ = owner"}},
	},
	{
		Name: "the owner of a function is not remembered", Package: "services/gateway/internal/replicas",
		Edits: []edit{{`c\.owners\.Add\(image, [^\n]*\)\)`, `_ = cmp.Or(image, "")`}},
	},
	{
		Name: "clients send no HTTP/2 pings", Package: "libs/rpcclient",
		Edits: []edit{{`HTTP2:\s+&http\.HTTP2Config\{SendPingTimeout: [^\n]*\n`, "\n"}},
	},
	{
		Name: "a client forgets the replicas when none is ready", Package: "libs/rpcclient",
		Edits: []edit{{`err == nil && len\(found\) == 0`, "false"}},
	},
	{
		Name: "a silent replica is not called after all others", Package: "libs/rpcclient",
		Edits: []edit{{`return int\(telemetry\.Bool\(x\.Silent\(\)\) - telemetry\.Bool\(y\.Silent\(\)\)\)`, "return 0"}},
	},
	{
		Name: "a pod whose callers leave is not checked", Package: "services/pod-manager/internal/pool",
		Edits: []edit{{`(case e\.Abandoned)( && l\.pod\.state == ready)`, "${1} && false${2}"}},
	},
	{
		Name: "a question for a pod's health has no bound", Package: "services/pod-manager/internal/probe",
		Edits: []edit{{`context\.WithTimeout\(ctx, askTimeout\)`, "context.WithCancel(ctx)"}},
	},
	{
		Name: "a pod's expiry is written to any pod of its name", Package: "services/pod-manager/internal/kube",
		Edits: []edit{{`"uid":%q,"annotations"`, `"annotations"`}, {`uid, (podspec\.AnnotationReclaimAfter, until)`, "${1}"}},
	},
	{
		Name: "the UIDs of deleted pods are kept for ever", Package: "services/pod-manager/internal/pool",
		Edits: []edit{{`\n\s*maps\.DeleteFunc\(m\.pods\.gone, old\)`, ""}},
	},
	{
		Name: "pods that ran out of memory are kept for ever", Package: "services/pod-manager/internal/pool",
		Edits: []edit{{`\n\s*maps\.DeleteFunc\(m\.leases\.outOfMemory, old\)`, ""}},
	},
	{
		Name: "images of forgotten functions are kept for ever", Package: "services/pod-manager/internal/manager",
		Edits: []edit{{`l\.images = known\b`, "_ = known"}},
	},
	{
		Name: "stale answers are not counted", Package: "libs/resolverclient",
		Edits: []edit{{`(stale\.Add\(ctx, )1`, "${1}0"}},
	},
}

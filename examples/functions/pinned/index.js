// A function in JavaScript, a validator: each image needs a tag other than latest, or a digest.
const list = require("node:fs").readFileSync(0, "utf8");
const images = [...list.matchAll(/^\s*(?:- )?image: *["']?([^\s"']+)/gm)].map((match) => match[1]);
const moving = images.filter((image) => !/@|:(?!latest$)[^/]+$/.test(image));
const results = moving.map((image) => ({ message: `${image} has no fixed tag`, severity: "error" }));

// JSON is YAML too.
process.stdout.write(list + (results.length ? `results: ${JSON.stringify(results)}\n` : ""));
process.exitCode = results.length ? 1 : 0;

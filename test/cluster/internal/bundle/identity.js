// Gives back the ResourceList it is given.
process.stdin.pipe(process.stdout);

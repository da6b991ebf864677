// This module is preloaded (`node --require`) into a program that a shell or a terminal starts. It writes the program's
// output to a file next to this one, and check-output.ts compares the output with the schemas.
const fs = require("node:fs");
const { join } = require("node:path");
const { writeSync } = fs;
const said = { 1: [], 2: [] };

fs.writeSync = (fd, data, offset = 0, ...more) => {
  const count = writeSync(fd, data, offset, ...more);
  said[fd]?.push(Buffer.from(data).subarray(offset, offset + count));
  return count;
};
for (const stream of [process.stdout, process.stderr]) {
  const { write } = stream;
  stream.write = (data, ...more) => {
    said[stream.fd]?.push(Buffer.from(data));
    return write.call(stream, data, ...more);
  };
}
process.on("exit", (code) => {
  const [stdout, stderr] = [1, 2].map((fd) => Buffer.concat(said[fd]).toString());
  const run = { words: process.argv.slice(2), env: process.env, said: { code, stdout, stderr } };
  fs.writeFileSync(join(__dirname, `${process.pid}-${process.hrtime.bigint()}.json`), JSON.stringify(run));
});

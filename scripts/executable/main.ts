// The entry of the single executable. It does not check Node's version as bin/integ.js does, because it contains Node.
import { main } from "../../src/main.ts";

void main(process).then((code) => {
  process.exitCode = code;
});

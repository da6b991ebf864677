#!/usr/bin/env node
"use strict";
// The only file that Node may parse before its version is known: plain old syntax until the check has passed.
var version = process.versions.node.split(".").map(Number);
var supported = version[0] > 22 || (version[0] === 22 && version[1] >= 12) || (version[0] === 20 && version[1] >= 19);
if (!supported) {
  process.stderr.write(
    "integ: Node.js " + process.versions.node + " is too old. Install Node.js 20.19 or newer (22.12 or newer of 22).\n",
  );
  process.exitCode = 1;
} else {
  void require("../dist/main.cjs")
    .main(process, __dirname + "/../dist", module.children[0])
    .then(function (code) {
      process.exitCode = code;
    });
}

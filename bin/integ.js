#!/usr/bin/env node
"use strict";
// Node parses this file before its version is checked, so it uses only syntax of old versions.
var version = process.versions.node.split(".").map(Number);
var supported = version[0] > 22 || (version[0] === 22 && version[1] >= 12) || (version[0] === 20 && version[1] >= 19);
if (!supported) {
  fail("Node.js " + process.versions.node + " is too old. Install Node.js 20.19 or newer (22.12 or newer of 22).");
} else if (!require("fs").existsSync(__dirname + "/../dist/main.cjs")) {
  fail("this copy is not built. Run npm ci in " + require("path").dirname(__dirname) + ".");
} else {
  void require("../dist/main.cjs")
    .main(process)
    .then(function (code) {
      process.exitCode = code;
    });
}

function fail(why) {
  process.stderr.write("integ: " + why + "\n");
  process.exitCode = 1;
}

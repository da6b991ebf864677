"use strict";
// For node:child_process inside commander, which needs it for subcommands that are programs of their own. There are none.
exports.spawn = () => {
  throw new Error("no subcommand is a program of its own");
};

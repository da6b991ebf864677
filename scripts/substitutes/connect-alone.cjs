"use strict";
// For undici's lib/core/util.js inside its lib/core/connect.js: a connection needs two functions of the 60 there, and a list
// needs no more of undici than a connection.
const { isIP } = require("node:net");

/** The name that a TLS handshake asks for; none for an address. @param host with its port, an IPv6 address in brackets */
exports.getServerName = (host) => {
  if (!host) return null;
  const name = host.startsWith("[") ? host.slice(1, host.indexOf("]")) : host.split(":")[0];
  return isIP(name) ? "" : name;
};

exports.setupConnectTimeout = (_socket, { timeout }) => {
  if (timeout) throw new Error("the time of a connection is its exchange's");
  return () => {};
};

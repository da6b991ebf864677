"use strict";
// For undici's lib/dispatcher/client-h2.js (1,100 lines). The TLS handshake offers HTTP/1.1 only (`allowH2` is not set), so
// no server can choose HTTP/2.
module.exports = () => {
  throw new Error("HTTP/2 was not offered");
};

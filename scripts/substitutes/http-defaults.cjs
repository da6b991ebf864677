"use strict";
// For node:http inside undici, which is 5 ms of a start. undici makes its connections itself; of node:http it needs the
// default limit of a response's head and a constructor that it compares stream bodies with. No body here is a stream.
exports.maxHeaderSize = 16384;
exports.IncomingMessage = function IncomingMessage() {};

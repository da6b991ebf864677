"use strict";
// For undici's lib/web/fetch/body.js, which brings the whole of fetch. It is asked for FormData bodies only; bodies here
// are strings and buffers.
exports.extractBody = () => {
  throw new Error("no request has a FormData body");
};

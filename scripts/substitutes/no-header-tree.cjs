"use strict";
// For undici's lib/core/tree.js, which makes a search tree of the same names for the bytes of headers.
exports.tree = { lookup: () => null };

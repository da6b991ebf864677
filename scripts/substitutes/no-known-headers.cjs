"use strict";
// For undici's lib/core/constants.js: a table of a hundred header names, which undici makes at every start. A name that it has not is
// put in lower case and checked then, which gives the same.
exports.headerNameLowerCasedRecord = Object.create(null);

"use strict";
// For undici's lib/core/errors.js inside its lib/core/connect.js, which needs one of 25 for an option that is not set.
exports.InvalidArgumentError = class InvalidArgumentError extends Error {};

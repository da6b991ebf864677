;; Rows out of the members of a page: what is before a member, then its value as JSON, CSV, YAML or a table has it. A row with a value
;; that is more than its bytes is left to the caller. row-writer.ts says what lies where; behind each text sixteen bytes may be
;; read, and behind what is written sixteen be overwritten.
(module
  (memory (export "memory") 1)
  ;; behind the last row that was written
  (global $end (export "end") (mut i32) (i32.const 0))
  ;; of the last cell of a table, the columns of a screen that it takes
  (global $columns (mut i32) (i32.const 0))

  ;; result: behind the copy
  (func $copy (param $from i32) (param $to i32) (param $length i32) (result i32)
    (local $at i32)
    (loop $next
      (v128.store align=1
        (i32.add (local.get $to) (local.get $at))
        (v128.load align=1 (i32.add (local.get $from) (local.get $at))))
      (local.set $at (i32.add (local.get $at) (i32.const 16)))
      (br_if $next (i32.lt_u (local.get $at) (local.get $length))))
    (i32.add (local.get $to) (local.get $length)))

  ;; a bit for each of the next sixteen bytes that are among the $rest that are left
  (func $mask (param $rest i32) (result i32)
    (select
      (i32.const 0xffff)
      (i32.sub (i32.shl (i32.const 1) (local.get $rest)) (i32.const 1))
      (i32.ge_u (local.get $rest) (i32.const 16))))

  ;; a cell of CSV: the text without its quotes unless a comma is in it, nothing for null
  ;; result: behind it; 0 if it has an escape, is an object or an array, or begins as what a spreadsheet might run
  (func $csv (param $value i32) (param $after i32) (param $to i32) (result i32)
    (local $byte i32) (local $from i32) (local $length i32) (local $at i32) (local $mask i32) (local $commas i32)
    (local $bytes v128)
    (local.set $byte (i32.load8_u (local.get $value)))
    (if (i32.eq (local.get $byte) (i32.const 34)) (then
      (local.set $from (i32.add (local.get $value) (i32.const 1)))
      (local.set $byte (i32.load8_u (local.get $from)))
      ;; = + - @, and the first byte of their full-width forms
      (if (i32.or
            (i32.or (i32.eq (local.get $byte) (i32.const 0x3d)) (i32.eq (local.get $byte) (i32.const 0x2b)))
            (i32.or
              (i32.or (i32.eq (local.get $byte) (i32.const 0x2d)) (i32.eq (local.get $byte) (i32.const 0x40)))
              (i32.eq (local.get $byte) (i32.const 0xef))))
        (then (return (i32.const 0))))
      (local.set $length (i32.sub (i32.sub (local.get $after) (local.get $from)) (i32.const 1)))
      (block $read
        (loop $next
          (br_if $read (i32.ge_u (local.get $at) (local.get $length)))
          (local.set $bytes (v128.load align=1 (i32.add (local.get $from) (local.get $at))))
          (v128.store align=1 (i32.add (local.get $to) (local.get $at)) (local.get $bytes))
          (local.set $mask (call $mask (i32.sub (local.get $length) (local.get $at))))
          (if (i32.and (local.get $mask) (i8x16.bitmask (i8x16.eq (local.get $bytes)
                (v128.const i8x16 92 92 92 92 92 92 92 92 92 92 92 92 92 92 92 92))))
            (then (return (i32.const 0))))
          (local.set $commas (i32.or (local.get $commas)
            (i32.and (local.get $mask) (i8x16.bitmask (i8x16.eq (local.get $bytes)
              (v128.const i8x16 44 44 44 44 44 44 44 44 44 44 44 44 44 44 44 44))))))
          (local.set $at (i32.add (local.get $at) (i32.const 16)))
          (br $next)))
      (if (i32.eqz (local.get $commas)) (then (return (i32.add (local.get $to) (local.get $length)))))
      (return (call $copy (local.get $value) (local.get $to) (i32.add (local.get $length) (i32.const 2))))))
    (if (i32.eq (local.get $byte) (i32.const 110)) (then (return (local.get $to))))
    (if (i32.or (i32.eq (local.get $byte) (i32.const 123)) (i32.eq (local.get $byte) (i32.const 91)))
      (then (return (i32.const 0))))
    (call $copy (local.get $value) (local.get $to) (i32.sub (local.get $after) (local.get $value))))

  ;; whether a word of one to five letters means something in YAML: y n on no yes off true null false
  (func $isReserved (param $from i32) (param $length i32) (result i32)
    (local $word i64)
    (local.set $word (i64.or
      (i64.and
        (i64.load align=1 (local.get $from))
        (i64.sub (i64.shl (i64.const 1) (i64.extend_i32_u (i32.shl (local.get $length) (i32.const 3)))) (i64.const 1)))
      (i64.and
        (i64.const 0x2020202020)
        (i64.sub (i64.shl (i64.const 1) (i64.extend_i32_u (i32.shl (local.get $length) (i32.const 3)))) (i64.const 1)))))
    (i32.or
      (i32.or
        (i32.or (i64.eq (local.get $word) (i64.const 0x79)) (i64.eq (local.get $word) (i64.const 0x6e)))
        (i32.or (i64.eq (local.get $word) (i64.const 0x6e6f)) (i64.eq (local.get $word) (i64.const 0x6f6e))))
      (i32.or
        (i32.or (i64.eq (local.get $word) (i64.const 0x736579)) (i64.eq (local.get $word) (i64.const 0x66666f)))
        (i32.or
          (i32.or (i64.eq (local.get $word) (i64.const 0x65757274)) (i64.eq (local.get $word) (i64.const 0x6c6c756e)))
          (i64.eq (local.get $word) (i64.const 0x65736c6166))))))

  ;; a value of YAML: a word or words without quotes, other text in those of JSON
  ;; result: behind it; 0 if it has an escape or another character than ASCII, or is an object or an array
  (func $yaml (param $value i32) (param $after i32) (param $to i32) (result i32)
    (local $byte i32) (local $from i32) (local $length i32) (local $at i32) (local $mask i32) (local $isWord i32)
    (local $spaces i32) (local $isAfterSpace i32) (local $bytes v128)
    (local.set $byte (i32.load8_u (local.get $value)))
    (if (i32.or (i32.eq (local.get $byte) (i32.const 123)) (i32.eq (local.get $byte) (i32.const 91)))
      (then (return (i32.const 0))))
    (if (i32.ne (local.get $byte) (i32.const 34))
      (then (return (call $copy (local.get $value) (local.get $to) (i32.sub (local.get $after) (local.get $value))))))
    (local.set $from (i32.add (local.get $value) (i32.const 1)))
    (local.set $length (i32.sub (i32.sub (local.get $after) (local.get $from)) (i32.const 1)))
    ;; the first is a letter; for no byte at all it is the closing quote
    (local.set $isWord (i32.lt_u
      (i32.sub (i32.or (i32.load8_u (local.get $from)) (i32.const 0x20)) (i32.const 0x61))
      (i32.const 26)))
    (block $read
      (loop $next
        (br_if $read (i32.ge_u (local.get $at) (local.get $length)))
        (local.set $bytes (v128.load align=1 (i32.add (local.get $from) (local.get $at))))
        (v128.store align=1 (i32.add (local.get $to) (local.get $at)) (local.get $bytes))
        (local.set $mask (call $mask (i32.sub (local.get $length) (local.get $at))))
        (if (i32.and (local.get $mask) (i8x16.bitmask (v128.or
              (i8x16.gt_u (local.get $bytes)
                (v128.const i8x16 126 126 126 126 126 126 126 126 126 126 126 126 126 126 126 126))
              (i8x16.eq (local.get $bytes)
                (v128.const i8x16 92 92 92 92 92 92 92 92 92 92 92 92 92 92 92 92)))))
          (then (return (i32.const 0))))
        (if (local.get $isWord) (then
          (local.set $spaces (i32.and (local.get $mask) (i8x16.bitmask (i8x16.eq (local.get $bytes)
            (v128.const i8x16 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32)))))
          ;; a character that is in no word, or two spaces
          (if (i32.or
                (i32.and
                  (i32.and (local.get $mask) (i32.xor (local.get $spaces) (i32.const 0xffff)))
                  (i32.xor (i32.const 0xffff) (call $inWords (local.get $bytes))))
                (i32.and
                  (local.get $spaces)
                  (i32.or (i32.shl (local.get $spaces) (i32.const 1)) (local.get $isAfterSpace))))
            (then (local.set $isWord (i32.const 0))))
          (local.set $isAfterSpace (i32.shr_u (local.get $spaces) (i32.const 15)))))
        (local.set $at (i32.add (local.get $at) (i32.const 16)))
        (br $next)))
    (if (local.get $isWord) (then
      (local.set $isWord (i32.ne
        (i32.load8_u (i32.sub (i32.add (local.get $from) (local.get $length)) (i32.const 1)))
        (i32.const 32)))
      (if (i32.le_u (local.get $length) (i32.const 5)) (then
        (if (call $isReserved (local.get $from) (local.get $length)) (then (local.set $isWord (i32.const 0))))))))
    (if (local.get $isWord) (then (return (i32.add (local.get $to) (local.get $length)))))
    (call $copy (local.get $value) (local.get $to) (i32.add (local.get $length) (i32.const 2))))

  ;; a bit for each byte that may be in a word: letters, digits, _ . / @ + -
  (func $inWords (param $bytes v128) (result i32)
    (i8x16.bitmask (v128.or
      (v128.or
        (i8x16.lt_u
          (i8x16.sub
            (v128.or (local.get $bytes) (v128.const i8x16 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32))
            (v128.const i8x16 97 97 97 97 97 97 97 97 97 97 97 97 97 97 97 97))
          (v128.const i8x16 26 26 26 26 26 26 26 26 26 26 26 26 26 26 26 26))
        ;; - . / and the digits follow each other
        (i8x16.lt_u
          (i8x16.sub (local.get $bytes) (v128.const i8x16 45 45 45 45 45 45 45 45 45 45 45 45 45 45 45 45))
          (v128.const i8x16 13 13 13 13 13 13 13 13 13 13 13 13 13 13 13 13)))
      (v128.or
        (i8x16.eq (local.get $bytes) (v128.const i8x16 43 43 43 43 43 43 43 43 43 43 43 43 43 43 43 43))
        (v128.or
          (i8x16.eq (local.get $bytes) (v128.const i8x16 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64))
          (i8x16.eq (local.get $bytes) (v128.const i8x16 95 95 95 95 95 95 95 95 95 95 95 95 95 95 95 95)))))))

  ;; a cell of a table: a text without its quotes, - for null; sets $columns
  ;; result: behind it; 0 if it is empty, is no text, has an escape, or a character whose width $widths does not have
  (func $cell (param $value i32) (param $after i32) (param $to i32) (param $widths i32) (result i32)
    (local $byte i32) (local $from i32) (local $length i32) (local $at i32) (local $mask i32) (local $beyond i32)
    (local $bytes v128)
    (local.set $byte (i32.load8_u (local.get $value)))
    (if (i32.eq (local.get $byte) (i32.const 110)) (then
      (i32.store8 (local.get $to) (i32.const 45))
      (global.set $columns (i32.const 1))
      (return (i32.add (local.get $to) (i32.const 1)))))
    (if (i32.ne (local.get $byte) (i32.const 34)) (then (return (i32.const 0))))
    (local.set $from (i32.add (local.get $value) (i32.const 1)))
    (local.set $length (i32.sub (i32.sub (local.get $after) (local.get $from)) (i32.const 1)))
    (if (i32.eqz (local.get $length)) (then (return (i32.const 0))))
    (loop $next
      (local.set $bytes (v128.load align=1 (i32.add (local.get $from) (local.get $at))))
      (v128.store align=1 (i32.add (local.get $to) (local.get $at)) (local.get $bytes))
      (local.set $mask (call $mask (i32.sub (local.get $length) (local.get $at))))
      (if (i32.and (local.get $mask) (i8x16.bitmask (v128.or
            (i8x16.eq (local.get $bytes)
              (v128.const i8x16 92 92 92 92 92 92 92 92 92 92 92 92 92 92 92 92))
            (i8x16.eq (local.get $bytes)
              (v128.const i8x16 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127)))))
        (then (return (i32.const 0))))
      (local.set $beyond (i32.or (local.get $beyond) (i32.and (local.get $mask) (i8x16.bitmask (local.get $bytes)))))
      (local.set $at (i32.add (local.get $at) (i32.const 16)))
      (br_if $next (i32.lt_u (local.get $at) (local.get $length))))
    (global.set $columns (local.get $length))
    (if (local.get $beyond) (then
      (global.set $columns (call $widthOf (local.get $from) (local.get $length) (local.get $widths)))
      (if (i32.eqz (global.get $columns)) (then (return (i32.const 0))))))
    (i32.add (local.get $to) (local.get $length)))

  ;; columns of a text in UTF-8; 0 if the width of one of its characters is not known
  (func $widthOf (param $at i32) (param $length i32) (param $widths i32) (result i32)
    (local $end i32) (local $byte i32) (local $unit i32) (local $columns i32)
    (local.set $end (i32.add (local.get $at) (local.get $length)))
    (loop $next
      (local.set $byte (i32.load8_u (local.get $at)))
      (if (i32.lt_u (local.get $byte) (i32.const 0x80))
        (then
          (local.set $columns (i32.add (local.get $columns) (i32.const 1)))
          (local.set $at (i32.add (local.get $at) (i32.const 1))))
        (else
          (if (i32.ge_u (local.get $byte) (i32.const 0xf0)) (then (return (i32.const 0))))
          (if (i32.lt_u (local.get $byte) (i32.const 0xe0))
            (then
              (local.set $unit (i32.or
                (i32.shl (i32.and (local.get $byte) (i32.const 0x1f)) (i32.const 6))
                (i32.and (i32.load8_u offset=1 (local.get $at)) (i32.const 0x3f))))
              (local.set $at (i32.add (local.get $at) (i32.const 2))))
            (else
              (local.set $unit (i32.or
                (i32.or
                  (i32.shl (i32.and (local.get $byte) (i32.const 0x0f)) (i32.const 12))
                  (i32.shl (i32.and (i32.load8_u offset=1 (local.get $at)) (i32.const 0x3f)) (i32.const 6)))
                (i32.and (i32.load8_u offset=2 (local.get $at)) (i32.const 0x3f))))
              (local.set $at (i32.add (local.get $at) (i32.const 3)))))
          (local.set $byte (i32.load8_u (i32.add (local.get $widths) (local.get $unit))))
          (if (i32.eqz (local.get $byte)) (then (return (i32.const 0))))
          (local.set $columns (i32.add (local.get $columns) (local.get $byte)))))
      (br_if $next (i32.lt_u (local.get $at) (local.get $end))))
    (local.get $columns))

  ;; Writes rows up to the first that is left to the caller.
  ;; $parts: of a row, $count of them, six numbers each: where the text before the value is, and its length; the number of the member
  ;; in its row; its kind: 0 none, 1 JSON, 2 CSV, 3 YAML, 4 a table; the width of its column, and of the gap behind it
  ;; $body, $ranges, $places: as in row-scanner.wat; $row: the first; $last: behind the last; $to: where they are written;
  ;; $widths: of each UTF-16 unit the columns, 0 if they are not known
  ;; result: the row that was not written, or $last; $end is behind what was written
  (func (export "rows")
    (param $parts i32) (param $count i32) (param $body i32) (param $ranges i32) (param $places i32)
    (param $row i32) (param $last i32) (param $to i32) (param $widths i32) (result i32)
    (local $first i32) (local $part i32) (local $behind i32) (local $at i32) (local $kind i32) (local $place i32)
    (local $value i32) (local $after i32) (local $padding i32)
    (local.set $behind (i32.add (local.get $parts) (i32.mul (local.get $count) (i32.const 24))))
    (global.set $end (local.get $to))
    (block $done
      (loop $nextRow
        (br_if $done (i32.ge_u (local.get $row) (local.get $last)))
        (local.set $first (i32.and
          (i32.load (i32.add (local.get $ranges) (i32.shl (local.get $row) (i32.const 3))))
          (i32.const 0x7fffffff)))
        (local.set $at (global.get $end))
        (local.set $part (local.get $parts))
        (loop $nextPart
          (local.set $at (call $copy
            (i32.load (local.get $part)) (local.get $at) (i32.load offset=4 (local.get $part))))
          (local.set $kind (i32.load offset=12 (local.get $part)))
          (if (local.get $kind) (then
            (local.set $place (i32.add (local.get $places) (i32.shl
              (i32.add (local.get $first) (i32.load offset=8 (local.get $part))) (i32.const 4))))
            (local.set $value (i32.add (local.get $body) (i32.load offset=8 (local.get $place))))
            (local.set $after (i32.add (local.get $body) (i32.load offset=12 (local.get $place))))
            (if (i32.eq (local.get $kind) (i32.const 1))
              (then (local.set $at (call $copy
                (local.get $value) (local.get $at) (i32.sub (local.get $after) (local.get $value)))))
              (else (if (i32.eq (local.get $kind) (i32.const 2))
                (then (local.set $at (call $csv (local.get $value) (local.get $after) (local.get $at))))
                (else (if (i32.eq (local.get $kind) (i32.const 3))
                  (then (local.set $at (call $yaml (local.get $value) (local.get $after) (local.get $at))))
                  (else (local.set $at (call $cell
                    (local.get $value) (local.get $after) (local.get $at) (local.get $widths)))))))))
            (br_if $done (i32.eqz (local.get $at)))
            (if (i32.eq (local.get $kind) (i32.const 4)) (then
              (local.set $padding (i32.sub (i32.load offset=16 (local.get $part)) (global.get $columns)))
              (if (i32.lt_s (local.get $padding) (i32.const 0)) (then (local.set $padding (i32.const 0))))
              (local.set $padding (i32.add (local.get $padding) (i32.load offset=20 (local.get $part))))
              (local.set $place (local.get $at))
              (local.set $at (i32.add (local.get $at) (local.get $padding)))
              (block $padded
                (loop $more
                  (br_if $padded (i32.ge_u (local.get $place) (local.get $at)))
                  (v128.store align=1 (local.get $place)
                    (v128.const i8x16 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32))
                  (local.set $place (i32.add (local.get $place) (i32.const 16)))
                  (br $more)))))))
          (local.set $part (i32.add (local.get $part) (i32.const 24)))
          (br_if $nextPart (i32.lt_u (local.get $part) (local.get $behind))))
        (global.set $end (local.get $at))
        (local.set $row (i32.add (local.get $row) (i32.const 1)))
        (br $nextRow)))
    (local.get $row))
)

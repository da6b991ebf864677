;; The rows of a page in its usual form, checked sixteen bytes at a time. It takes what json-scanner.ts takes with no white
;; space outside of strings, and nothing else: whatever it refuses is read again there. row-scanner.ts says what lies where.
(module
  (memory (export "memory") 1)
  ;; how many rows and members were found
  (global $rows (export "rowCount") (mut i32) (i32.const 0))
  (global $members (export "memberCount") (mut i32) (i32.const 0))

  ;; where a string ends, behind its closing quote; 0 if it is none. $at: behind the opening quote
  (func $string (param $at i32) (result i32)
    (local $bytes v128) (local $found i32) (local $byte i32)
    (loop $next
      (local.set $bytes (v128.load align=1 (local.get $at)))
      (local.set $found (i8x16.bitmask (v128.or
        (i8x16.le_u (local.get $bytes) (v128.const i8x16 31 31 31 31 31 31 31 31 31 31 31 31 31 31 31 31))
        (v128.or
          (i8x16.eq (local.get $bytes) (v128.const i8x16 34 34 34 34 34 34 34 34 34 34 34 34 34 34 34 34))
          (i8x16.eq (local.get $bytes) (v128.const i8x16 92 92 92 92 92 92 92 92 92 92 92 92 92 92 92 92))))))
      (if (i32.eqz (local.get $found)) (then
        (local.set $at (i32.add (local.get $at) (i32.const 16)))
        (br $next)))
      (local.set $at (i32.add (local.get $at) (i32.ctz (local.get $found))))
      (local.set $byte (i32.load8_u (local.get $at)))
      (if (i32.eq (local.get $byte) (i32.const 34)) (then (return (i32.add (local.get $at) (i32.const 1)))))
      (if (i32.ne (local.get $byte) (i32.const 92)) (then (return (i32.const 0))))
      (local.set $at (call $escape (i32.add (local.get $at) (i32.const 1))))
      (br_if $next (local.get $at)))
    (i32.const 0))

  ;; where an escape ends; 0 if it is none. $at: behind its backslash
  (func $escape (param $at i32) (result i32)
    (local $byte i32)
    (local.set $byte (i32.load8_u (local.get $at)))
    ;; " / \ b f n r t
    (if (i32.or
          (i32.or
            (i32.or (i32.eq (local.get $byte) (i32.const 34)) (i32.eq (local.get $byte) (i32.const 47)))
            (i32.or (i32.eq (local.get $byte) (i32.const 92)) (i32.eq (local.get $byte) (i32.const 98))))
          (i32.or
            (i32.or (i32.eq (local.get $byte) (i32.const 102)) (i32.eq (local.get $byte) (i32.const 110)))
            (i32.or (i32.eq (local.get $byte) (i32.const 114)) (i32.eq (local.get $byte) (i32.const 116)))))
      (then (return (i32.add (local.get $at) (i32.const 1)))))
    ;; u and four digits
    (if (i32.ne (local.get $byte) (i32.const 117)) (then (return (i32.const 0))))
    (if (i32.and
          (i32.and (call $isHex (i32.load8_u offset=1 (local.get $at))) (call $isHex (i32.load8_u offset=2 (local.get $at))))
          (i32.and (call $isHex (i32.load8_u offset=3 (local.get $at))) (call $isHex (i32.load8_u offset=4 (local.get $at)))))
      (then (return (i32.add (local.get $at) (i32.const 5)))))
    (i32.const 0))

  (func $isHex (param $byte i32) (result i32)
    (i32.or
      (call $isDigit (local.get $byte))
      (i32.lt_u (i32.sub (i32.or (local.get $byte) (i32.const 32)) (i32.const 97)) (i32.const 6))))

  (func $isDigit (param $byte i32) (result i32)
    (i32.lt_u (i32.sub (local.get $byte) (i32.const 48)) (i32.const 10)))

  ;; where a run of digits ends; 0 if there is none
  (func $digits (param $from i32) (result i32)
    (local $at i32)
    (local.set $at (local.get $from))
    (loop $next
      (if (call $isDigit (i32.load8_u (local.get $at))) (then
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next))))
    (select (i32.const 0) (local.get $at) (i32.eq (local.get $at) (local.get $from))))

  (func $number (param $at i32) (result i32)
    (local $byte i32)
    (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 45)) (then
      (local.set $at (i32.add (local.get $at) (i32.const 1)))))
    ;; a zero stands alone
    (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 48))
      (then (local.set $at (i32.add (local.get $at) (i32.const 1))))
      (else
        (local.set $at (call $digits (local.get $at)))
        (if (i32.eqz (local.get $at)) (then (return (i32.const 0))))))
    (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 46)) (then
      (local.set $at (call $digits (i32.add (local.get $at) (i32.const 1))))
      (if (i32.eqz (local.get $at)) (then (return (i32.const 0))))))
    ;; e or E
    (if (i32.eq (i32.or (i32.load8_u (local.get $at)) (i32.const 32)) (i32.const 101)) (then
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (local.set $byte (i32.load8_u (local.get $at)))
      (if (i32.or (i32.eq (local.get $byte) (i32.const 43)) (i32.eq (local.get $byte) (i32.const 45))) (then
        (local.set $at (i32.add (local.get $at) (i32.const 1)))))
      (return (call $digits (local.get $at)))))
    (local.get $at))

  ;; where a value ends; 0 if it is none. $depth: of the value itself
  (func $value (param $at i32) (param $depth i32) (result i32)
    (local $byte i32)
    (local.set $byte (i32.load8_u (local.get $at)))
    (if (i32.eq (local.get $byte) (i32.const 34))
      (then (return (call $string (i32.add (local.get $at) (i32.const 1))))))
    (if (i32.eq (local.get $byte) (i32.const 123))
      (then (return (call $object (i32.add (local.get $at) (i32.const 1)) (i32.add (local.get $depth) (i32.const 1))))))
    (if (i32.eq (local.get $byte) (i32.const 91))
      (then (return (call $array (i32.add (local.get $at) (i32.const 1)) (i32.add (local.get $depth) (i32.const 1))))))
    (if (i32.or (i32.eq (local.get $byte) (i32.const 45)) (call $isDigit (local.get $byte)))
      (then (return (call $number (local.get $at)))))
    ;; true, null, false
    (if (i32.eq (i32.load align=1 (local.get $at)) (i32.const 0x65757274))
      (then (return (i32.add (local.get $at) (i32.const 4)))))
    (if (i32.eq (i32.load align=1 (local.get $at)) (i32.const 0x6c6c756e))
      (then (return (i32.add (local.get $at) (i32.const 4)))))
    (if (i32.eq (i32.load align=1 (local.get $at)) (i32.const 0x736c6166)) (then
      (if (i32.eq (i32.load8_u offset=4 (local.get $at)) (i32.const 101))
        (then (return (i32.add (local.get $at) (i32.const 5)))))))
    (i32.const 0))

  (func $object (param $at i32) (param $depth i32) (result i32)
    (local $byte i32)
    (if (i32.gt_u (local.get $depth) (i32.const 200)) (then (return (i32.const 0))))
    (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 125))
      (then (return (i32.add (local.get $at) (i32.const 1)))))
    (loop $next
      (if (i32.ne (i32.load8_u (local.get $at)) (i32.const 34)) (then (return (i32.const 0))))
      (local.set $at (call $string (i32.add (local.get $at) (i32.const 1))))
      (if (i32.eqz (local.get $at)) (then (return (i32.const 0))))
      (if (i32.ne (i32.load8_u (local.get $at)) (i32.const 58)) (then (return (i32.const 0))))
      (local.set $at (call $value (i32.add (local.get $at) (i32.const 1)) (local.get $depth)))
      (if (i32.eqz (local.get $at)) (then (return (i32.const 0))))
      (local.set $byte (i32.load8_u (local.get $at)))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $next (i32.eq (local.get $byte) (i32.const 44))))
    (select (local.get $at) (i32.const 0) (i32.eq (local.get $byte) (i32.const 125))))

  (func $array (param $at i32) (param $depth i32) (result i32)
    (local $byte i32)
    (if (i32.gt_u (local.get $depth) (i32.const 200)) (then (return (i32.const 0))))
    (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 93))
      (then (return (i32.add (local.get $at) (i32.const 1)))))
    (loop $next
      (local.set $at (call $value (local.get $at) (local.get $depth)))
      (if (i32.eqz (local.get $at)) (then (return (i32.const 0))))
      (local.set $byte (i32.load8_u (local.get $at)))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $next (i32.eq (local.get $byte) (i32.const 44))))
    (select (local.get $at) (i32.const 0) (i32.eq (local.get $byte) (i32.const 93))))

  ;; whether two texts of one length are the same
  (func $isSame (param $a i32) (param $b i32) (param $length i32) (result i32)
    (local $equal i32)
    (loop $next
      (local.set $equal (i8x16.bitmask (i8x16.eq (v128.load align=1 (local.get $a)) (v128.load align=1 (local.get $b)))))
      (if (i32.ge_u (local.get $length) (i32.const 16)) (then
        (if (i32.ne (local.get $equal) (i32.const 0xffff)) (then (return (i32.const 0))))
        (local.set $a (i32.add (local.get $a) (i32.const 16)))
        (local.set $b (i32.add (local.get $b) (i32.const 16)))
        (local.set $length (i32.sub (local.get $length) (i32.const 16)))
        (br $next))))
    (i32.eqz (i32.and
      (i32.xor (local.get $equal) (i32.const 0xffff))
      (i32.sub (i32.shl (i32.const 1) (local.get $length)) (i32.const 1)))))

  ;; Reads rows up to the closing bracket of their array.
  ;; $at: the first row; $spans: where a row's first byte and the one behind its last are written, both counted from $body;
  ;; $mostRows; $ranges: where the numbers of a row's first member and of the one behind its last are written, the first with
  ;; the highest bit if the names are not those of the row before; $places: where both ends of the name and of the value of each
  ;; member are written; $mostMembers
  ;; result: behind the bracket; 0 if they are not in the usual form, or too many
  (func (export "rows")
    (param $at i32) (param $body i32) (param $spans i32) (param $mostRows i32)
    (param $ranges i32) (param $places i32) (param $mostMembers i32) (result i32)
    (local $rows i32) (local $members i32) (local $byte i32) (local $name i32) (local $nameEnd i32) (local $value i32)
    (local $place i32) (local $before i32) (local $first i32) (local $differs i32) (local $length i32)
    (local $bytes v128) (local $found i32)
    (loop $nextRow
      (if (i32.ge_u (local.get $rows) (local.get $mostRows)) (then (return (i32.const 0))))
      (if (i32.ne (i32.load8_u (local.get $at)) (i32.const 123)) (then (return (i32.const 0))))
      (i32.store (local.get $spans) (i32.sub (local.get $at) (local.get $body)))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (local.set $before (local.get $first))
      (local.set $first (local.get $members))
      (local.set $differs (i32.eqz (local.get $rows)))
      (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 125))
        (then (local.set $at (i32.add (local.get $at) (i32.const 1))))
        (else
          (loop $nextMember
            (if (i32.ge_u (local.get $members) (local.get $mostMembers)) (then (return (i32.const 0))))
            (block $named
              ;; most rows have the names of the row before, each with its quotes and its colon
              (if (i32.eqz (local.get $differs)) (then
                (if (i32.lt_u (local.get $before) (local.get $first)) (then
                  (local.set $place (i32.add (local.get $places) (i32.shl (local.get $before) (i32.const 4))))
                  (local.set $name (i32.load (local.get $place)))
                  (local.set $length (i32.add (i32.sub (i32.load offset=8 (local.get $place)) (local.get $name)) (i32.const 1)))
                  (local.set $value (i32.sub (i32.add (local.get $body) (local.get $name)) (i32.const 1)))
                  (if (if (result i32) (i32.lt_u (local.get $length) (i32.const 16))
                        ;; as in $isSame, which most names are too short for to be worth its call
                        (then (i32.eqz (i32.and
                          (i32.xor
                            (i8x16.bitmask (i8x16.eq (v128.load align=1 (local.get $value)) (v128.load align=1 (local.get $at))))
                            (i32.const 0xffff))
                          (i32.sub (i32.shl (i32.const 1) (local.get $length)) (i32.const 1)))))
                        (else (call $isSame (local.get $value) (local.get $at) (local.get $length))))
                    (then
                      (local.set $nameEnd (i32.sub (i32.load offset=4 (local.get $place)) (local.get $name)))
                      (local.set $name (i32.add (local.get $at) (i32.const 1)))
                      (local.set $nameEnd (i32.add (local.get $nameEnd) (local.get $name)))
                      (local.set $value (i32.add (local.get $at) (local.get $length)))
                      (local.set $before (i32.add (local.get $before) (i32.const 1)))
                      (br $named)))))
                (local.set $differs (i32.const 1))))
              (if (i32.ne (i32.load8_u (local.get $at)) (i32.const 34)) (then (return (i32.const 0))))
              (local.set $name (i32.add (local.get $at) (i32.const 1)))
              (local.set $at (call $string (local.get $name)))
              (if (i32.eqz (local.get $at)) (then (return (i32.const 0))))
              (local.set $nameEnd (i32.sub (local.get $at) (i32.const 1)))
              (if (i32.ne (i32.load8_u (local.get $at)) (i32.const 58)) (then (return (i32.const 0))))
              (local.set $value (i32.add (local.get $at) (i32.const 1))))
            ;; most values are strings
            (if (i32.eq (i32.load8_u (local.get $value)) (i32.const 34))
              (then
                ;; as in $string, which reads on from an escape
                (local.set $at (i32.add (local.get $value) (i32.const 1)))
                (loop $more
                  (local.set $bytes (v128.load align=1 (local.get $at)))
                  (local.set $found (i8x16.bitmask (v128.or
                    (i8x16.le_u (local.get $bytes) (v128.const i8x16 31 31 31 31 31 31 31 31 31 31 31 31 31 31 31 31))
                    (v128.or
                      (i8x16.eq (local.get $bytes) (v128.const i8x16 34 34 34 34 34 34 34 34 34 34 34 34 34 34 34 34))
                      (i8x16.eq (local.get $bytes) (v128.const i8x16 92 92 92 92 92 92 92 92 92 92 92 92 92 92 92 92))))))
                  (if (i32.eqz (local.get $found)) (then
                    (local.set $at (i32.add (local.get $at) (i32.const 16)))
                    (br $more))))
                (local.set $at (i32.add (local.get $at) (i32.ctz (local.get $found))))
                (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 34))
                  (then (local.set $at (i32.add (local.get $at) (i32.const 1))))
                  (else (local.set $at (call $string (local.get $at))))))
              (else (local.set $at (call $value (local.get $value) (i32.const 3)))))
            (if (i32.eqz (local.get $at)) (then (return (i32.const 0))))
            (local.set $place (i32.add (local.get $places) (i32.shl (local.get $members) (i32.const 4))))
            (i32.store (local.get $place) (i32.sub (local.get $name) (local.get $body)))
            (i32.store offset=4 (local.get $place) (i32.sub (local.get $nameEnd) (local.get $body)))
            (i32.store offset=8 (local.get $place) (i32.sub (local.get $value) (local.get $body)))
            (i32.store offset=12 (local.get $place) (i32.sub (local.get $at) (local.get $body)))
            (local.set $members (i32.add (local.get $members) (i32.const 1)))
            (local.set $byte (i32.load8_u (local.get $at)))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (br_if $nextMember (i32.eq (local.get $byte) (i32.const 44))))
          (if (i32.ne (local.get $byte) (i32.const 125)) (then (return (i32.const 0))))))
      (i32.store offset=4 (local.get $spans) (i32.sub (local.get $at) (local.get $body)))
      (local.set $spans (i32.add (local.get $spans) (i32.const 8)))
      ;; the row before had more members
      (if (i32.and (i32.eqz (local.get $differs)) (i32.ne (local.get $before) (local.get $first)))
        (then (local.set $differs (i32.const 1))))
      (i32.store (local.get $ranges) (i32.or (local.get $first) (i32.shl (local.get $differs) (i32.const 31))))
      (i32.store offset=4 (local.get $ranges) (local.get $members))
      (local.set $ranges (i32.add (local.get $ranges) (i32.const 8)))
      (local.set $rows (i32.add (local.get $rows) (i32.const 1)))
      (local.set $byte (i32.load8_u (local.get $at)))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $nextRow (i32.eq (local.get $byte) (i32.const 44))))
    (if (i32.ne (local.get $byte) (i32.const 93)) (then (return (i32.const 0))))
    (global.set $rows (local.get $rows))
    (global.set $members (local.get $members))
    (local.get $at))

  ;; overwrites the byte behind each row but the last. $count: of spans, one at least
  (func (export "separate") (param $spans i32) (param $count i32) (param $body i32) (param $byte i32)
    (local $last i32)
    (local.set $last (i32.add (local.get $spans) (i32.shl (i32.sub (local.get $count) (i32.const 1)) (i32.const 3))))
    (loop $next
      (if (i32.lt_u (local.get $spans) (local.get $last)) (then
        (i32.store8 (i32.add (local.get $body) (i32.load offset=4 (local.get $spans))) (local.get $byte))
        (local.set $spans (i32.add (local.get $spans) (i32.const 8)))
        (br $next)))))
)

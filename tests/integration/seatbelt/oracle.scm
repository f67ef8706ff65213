;; Carries a profile for sandbox-exec out: answers which operations it allows on which objects. It knows nothing of srt.
;;
;;   guile -s oracle.scm CASES
;;
;; CASES has a line `PROFILE PARAMETERS QUESTIONS` for each profile, all of them files. PARAMETERS has a line `NAME=VALUE` each, QUESTIONS a line `OPERATION OBJECT` each; an object is a path, or `name:SERVICE`,
;; or `remote:HOST:PORT`. An answer is `allow` or `deny`. A profile's rules are kept as they come, and each question is decided
;; under two accounts of the system's precedence: (1) the last rule that matches wins, wildcards of operations included; (2) rules
;; are kept by operation, the most specific operation that has a rule which applies decides, a rule without a filter is its
;; operation's default wherever it stands, and among those with one the last that matches wins. Where they differ the answer is
;; `MODELS-DIFFER`.

(use-modules (ice-9 rdelim) (ice-9 match) (srfi srfi-1) (srfi srfi-11))

;; Everything is bytes: a character is one.
(define (open-bytes file)
  (let ((port (open-input-file file)))
    (set-port-encoding! port "ISO-8859-1")
    port))
(set-port-encoding! (current-output-port) "ISO-8859-1")

(define arguments (cdr (command-line)))
(define (lines-of file)
  (let ((port (open-bytes file)))
    (let loop ((lines '()))
      (let ((line (read-line port)))
        (if (eof-object? line) (reverse lines) (loop (cons line lines)))))))

(define parameters '())
(define (load-parameters file)
  (set! parameters
        (map (lambda (line)
               (let ((at (string-index line #\=)))
                 (cons (substring line 0 at) (substring line (+ at 1)))))
             (lines-of file))))

;; ---- regular expressions: parsed to continuation-passing matchers ----------------------------------------------------------

(define (compile-regex text)
  (define at 0)
  (define (peek) (if (< at (string-length text)) (string-ref text at) #f))
  (define (next!) (let ((c (peek))) (set! at (+ at 1)) c))
  ;; A matcher takes the text, a place and what to do from there.
  (define (empty s i k) (k i))
  (define (sequence a b) (lambda (s i k) (a s i (lambda (j) (b s j k)))))
  (define (either a b) (lambda (s i k) (or (a s i k) (b s i k))))
  (define (star a) (lambda (s i k)
                     (let again ((i i))
                       (or (a s i (lambda (j) (and (> j i) (again j)))) (k i)))))
  (define (byte-in? set) (lambda (s i k) (and (< i (string-length s)) (set (string-ref s i)) (k (+ i 1)))))
  (define (brackets)
    (let ((negated (and (eqv? (peek) #\^) (next!) #t)))
      (let loop ((members '()) (first #t))
        (let ((c (next!)))
          (cond
           ((not c) (error "brackets are not closed" text))
           ((and (char=? c #\]) (not first))
            (lambda (x)
              (let ((in (any (lambda (m) (and (char<=? (car m) x) (char<=? x (cdr m)))) members)))
                (if negated (not in) in))))
           ((and (eqv? (peek) #\-) (< (+ at 1) (string-length text)) (not (char=? (string-ref text (+ at 1)) #\])))
            (next!)
            (loop (cons (cons c (next!)) members) #f))
           (else (loop (cons (cons c c) members) #f)))))))
  (define (atom)
    (let ((c (next!)))
      (case c
        ((#\() (let ((inner (alternatives)))
                 (if (not (eqv? (next!) #\))) (error "a group is not closed" text))
                 inner))
        ((#\[) (byte-in? (brackets)))
        ((#\.) (byte-in? (lambda (x) #t)))
        ((#\^) (lambda (s i k) (and (= i 0) (k i))))
        ((#\$) (lambda (s i k) (and (= i (string-length s)) (k i))))
        ((#\\) (let ((c (next!)))
                 (if (char-alphabetic? c) (error "an escape that the dialect lacks" text))
                 (byte-in? (lambda (x) (char=? x c)))))
        (else (byte-in? (lambda (x) (char=? x c)))))))
  (define (repeated)
    (let loop ((a (atom)))
      (case (peek)
        ((#\*) (next!) (loop (star a)))
        ((#\+) (next!) (loop (sequence a (star a))))
        ((#\?) (next!) (loop (either a empty)))
        (else a))))
  (define (branch)
    (let loop ((a empty))
      (if (memv (peek) '(#f #\| #\))) a (loop (sequence a (repeated))))))
  (define (alternatives)
    (let loop ((a (branch)))
      (if (eqv? (peek) #\|) (begin (next!) (loop (either a (branch)))) a)))
  (define several #f)
  (let ((matcher (let loop ((a (branch)))
                   (if (eqv? (peek) #\|) (begin (next!) (set! several #t) (loop (either a (branch)))) a))))
    (if (peek) (error "a regular expression with a rest" text))
    ;; Unanchored: it may begin anywhere; but for `^` first, without alternatives, only at the start.
    (lambda (s)
      (let ((n (if (and (string-prefix? "^" text) (not several)) 0 (string-length s))))
        (let loop ((i 0))
          (and (<= i n) (or (matcher s i (lambda (j) #t)) (loop (+ i 1)))))))))

;; ---- the profile's language: a filter is a procedure from an object to #t, #f, or 'unknown -----------------------------------

(define rules '())

(define (path? object) (string-prefix? "/" object))
(define (tagged tag) (lambda (object) (and (string-prefix? tag object) (substring object (string-length tag)))))
(define name-of (tagged "name:"))
(define remote-of (tagged "remote:"))

(define (all filters)
  (lambda (object)
    (let loop ((filters filters) (so-far #t))
      (if (null? filters)
          so-far
          (let ((answer ((car filters) object)))
            (cond ((eq? answer #f) #f)
                  ((eq? answer 'unknown) (loop (cdr filters) 'unknown))
                  (else (loop (cdr filters) so-far))))))))
(define (some filters)
  (lambda (object)
    (let loop ((filters filters) (so-far #f))
      (if (null? filters)
          so-far
          (let ((answer ((car filters) object)))
            (cond ((eq? answer #t) #t)
                  ((eq? answer 'unknown) (loop (cdr filters) 'unknown))
                  (else (loop (cdr filters) so-far))))))))
(define (negation filter)
  (lambda (object)
    (let ((answer (filter object)))
      (if (eq? answer 'unknown) 'unknown (not answer)))))

(define known
  `((param . ,(lambda (name)
                (or (assoc-ref parameters name) (error "a parameter that is not given" name))))
    (string-append . ,string-append)
    (require-all . ,(lambda filters (all filters)))
    (require-any . ,(lambda filters (some filters)))
    (require-not . ,negation)
    (literal . ,(lambda (path) (lambda (object) (and (path? object) (string=? object path)))))
    (subpath . ,(lambda (path)
                  (lambda (object)
                    (and (path? object)
                         (or (string=? path "/") (string=? object path)
                             (string-prefix? (string-append path "/") object))))))
    (regex . ,(lambda (text)
                (let ((matches (compile-regex text)))
                  (lambda (object) (and (path? object) (matches object) #t)))))
    (global-name . ,(lambda (name) (lambda (object) (and (name-of object) (string=? (name-of object) name)))))
    (global-name-regex . ,(lambda (text)
                            (let ((matches (compile-regex text)))
                              (lambda (object) (and (name-of object) (matches (name-of object)) #t)))))
    (remote . ,(lambda (kind address)
                 (lambda (object) (and (remote-of object) (string=? (remote-of object) address)))))))

(define words '(tcp udp ip))

(define (evaluate form environment)
  (match form
    ((? string?) form)
    ((? symbol?)
     (cond ((assq form environment) => cdr)
           ((memq form words) form)
           (else (error "a word that is not known" form))))
    ((operator . operands)
     (cond ((and (assq operator environment) (procedure? (assq-ref environment operator)))
            (apply (assq-ref environment operator) (map (lambda (form) (evaluate form environment)) operands)))
           ;; A filter that this program does not know holds of nothing that is asked here.
           (else (lambda (object) #f))))))

(define (operation? form environment) (and (symbol? form) (not (assq form environment))))

(define (load-profile file)
  (set! rules '())
  (let ((port (open-bytes file)))
    (let loop ((environment known))
      (let ((form (read port)))
        (if (eof-object? form)
            (set! rules (reverse rules))
            (match form
              (('version 1) (loop environment))
              (('define name value) (loop (acons name (remembering (evaluate value environment)) environment)))
              (((and action (or 'allow 'deny)) . rest)
               (let*-values (((operations modified) (span (lambda (form) (operation? form environment)) rest))
                             ((filters) (remove (lambda (form) (match form (('with . _) #t) (_ #f))) modified)))
                 (let ((filter (and (pair? filters)
                                    (some (map (lambda (form) (evaluate form environment)) filters)))))
                   (for-each (lambda (operation) (set! rules (cons (list action operation filter) rules)))
                             operations)))
               (loop environment))))))))

;; ---- the two accounts of precedence ------------------------------------------------------------------------------------------

;; From the most specific name to the least: file-read-data, file-read*, file*, default.
(define (names-of operation)
  (let* ((parts (string-split operation #\-))
         (wild (let loop ((parts parts) (wild '()))
                 (if (null? parts)
                     wild
                     (loop (drop-right parts 1) (append wild (list (string-append (string-join parts "-") "*"))))))))
    (map string->symbol (append (list operation) wild '("default")))))

(define (applies? rule object)
  (let ((filter (caddr rule)))
    (if (not filter) #t
        (let ((answer (filter object)))
          (if (eq? answer 'unknown) (error "a question that the profile leaves open" object) answer)))))

;; A filter is asked once for an object, whichever rules and accounts it is in.
(define (remembering filter)
  (let ((object #f) (answer #f))
    (lambda (asked)
      (if (eq? asked object)
          answer
          (begin (set! answer (filter asked)) (set! object asked) answer)))))

(define (last-match operation object)
  (let ((names (names-of operation)))
    (fold (lambda (rule verdict)
            (if (and (memq (cadr rule) names) (applies? rule object)) (car rule) verdict))
          'deny rules)))

(define (bucket operation object)
  (let loop ((names (names-of operation)))
    (if (null? names)
        'deny
        (let* ((own (filter (lambda (rule) (eq? (cadr rule) (car names))) rules))
               (filtered (filter (lambda (rule) (and (caddr rule) (applies? rule object))) own))
               (plain (filter (lambda (rule) (not (caddr rule))) own)))
          (cond ((pair? filtered) (car (last filtered)))
                ((pair? plain) (car (last plain)))
                (else (loop (cdr names))))))))

(for-each
 (lambda (line)
   (match (string-split line #\space)
     ((profile parameters questions)
      (load-parameters parameters)
      (load-profile profile)
      (for-each
       (lambda (question)
         (let* ((at (string-index question #\space))
                (operation (substring question 0 at))
                (object (substring question (+ at 1)))
                (one (last-match operation object))
                (other (bucket operation object)))
           (display (if (eq? one other) one 'MODELS-DIFFER))
           (newline)))
       (lines-of questions)))))
 (lines-of (car arguments)))

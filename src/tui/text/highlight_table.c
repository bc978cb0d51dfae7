/* The languages (highlight.h). */
#include "text/highlight.h"

#define C_WORDS " auto bool break case char const continue default do double else enum extern false float for goto " \
    "if inline int long NULL register restrict return short signed sizeof static struct switch true typedef " \
    "union unsigned void volatile while size_t ssize_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t " \
    "uint64_t #define #include #if #ifdef #ifndef #else #elif #endif #pragma #undef "

const ebb_language ebb_languages[] = {
    { .names = " c h ", .words = C_WORDS,
      .line_comment = "//", .open_comment = "/*", .close_comment = "*/", .quotes = "\"'" },
    { .names = " cpp c++ cc cxx hpp cuda ",
      .words = C_WORDS "alignas alignof catch class concept consteval constexpr constinit co_await co_return co_yield "
          "decltype delete dynamic_cast explicit export final friend mutable namespace new noexcept nullptr operator "
          "override private protected public reinterpret_cast requires static_assert static_cast template this "
          "thread_local throw try typename using virtual ",
      .line_comment = "//", .open_comment = "/*", .close_comment = "*/", .quotes = "\"'" },
    { .names = " python py python3 py3 ",
      .words = " False None True and as assert async await break case class continue def del elif else except finally "
          "for from global if import in is lambda match nonlocal not or pass raise return self try while with yield ",
      .line_comment = "#", .quotes = "\"'", .has_triple = true },
    { .names = " javascript js jsx mjs typescript ts tsx ",
      .words = " abstract any as async await boolean break case catch class const constructor continue "
               "debugger declare "
          "default delete do else enum export extends false finally for from function get if implements import in "
          "instanceof interface keyof let namespace never new null number of private protected public readonly return "
          "set static string super switch symbol this throw true try type typeof undefined unknown var void "
          "while yield ",
      .line_comment = "//", .open_comment = "/*", .close_comment = "*/", .quotes = "\"'`", .long_quotes = "`" },
    { .names = " rust rs ",
      .words = " as async await bool break char const continue crate dyn else enum extern f32 f64 false fn for "
               "i8 i16 i32 "
          "i64 i128 if impl in isize let loop match mod move mut pub ref return self Self static str struct "
          "super trait "
          "true type u8 u16 u32 u64 u128 unsafe use usize where while ",
      .line_comment = "//", .open_comment = "/*", .close_comment = "*/", .quotes = "\"'", .long_quotes = "\"",
      .has_lifetimes = true },
    { .names = " go golang ",
      .words = " any bool break byte case chan complex64 complex128 const continue default defer else error "
               "fallthrough false "
          "float32 float64 for func go goto if import int int8 int16 int32 int64 interface iota map nil package range "
          "return rune select string struct switch true type uint uint8 uint16 uint32 uint64 uintptr var ",
      .line_comment = "//", .open_comment = "/*", .close_comment = "*/", .quotes = "\"'`", .long_quotes = "`" },
    { .names = " java kotlin kt scala cs csharp c# swift ",
      .words = " abstract as assert async await base bool boolean break byte case catch char class const continue data "
          "decimal default delegate do double else enum event extends extension final finally float for "
          "foreach fun func "
          "guard if implements import in init instanceof int interface internal is let long module namespace "
          "native new "
          "null nil object open operator out override package private protected protocol public readonly record return "
          "sealed self short static string struct super switch synchronized this throw throws transient true false try "
          "typealias using val var virtual void volatile when where while yield ",
      .line_comment = "//", .open_comment = "/*", .close_comment = "*/", .quotes = "\"'", .has_triple = true },
    { .names = " bash sh shell zsh console fish ",
      .words = " alias break case cd continue declare do done echo elif else esac eval exec exit export fi for "
               "function if in "
          "local printf read readonly return set shift source sudo test then trap unset until while ",
      .line_comment = "#", .quotes = "\"'", .long_quotes = "\"'" },
    { .names = " ruby rb perl pl r lua elixir julia ",
      .words = " and begin break case class def do else elseif elsif end ensure false for foreach function if in local "
          "module my next nil not or our package redo repeat require rescue return self sub super then true "
          "undef unless "
          "until use when while yield ",
      .line_comment = "#", .line_comment2 = "--", .quotes = "\"'" },
    { .names = " json jsonc json5 ", .words = " true false null ", .line_comment = "//", .quotes = "\"",
      .kind = EBB_LANGUAGE_DATA },
    { .names = " yaml yml toml ini conf dockerfile makefile make ", .words = " true false null yes no on off ",
      .line_comment = "#", .quotes = "\"'", .kind = EBB_LANGUAGE_DATA },
    { .names = " sql sqlite postgres postgresql mysql ",
      .words = " add all alter and as asc autoincrement begin between bigint blob boolean by cascade case char "
               "check column "
          "commit constraint create cross database date default delete desc distinct drop else end except "
          "exists foreign "
          "from full group having if in index inner insert int integer intersect into is join key left like limit not "
          "null numeric offset on or order outer over partition primary real references replace returning "
          "right rollback "
          "select set table text then timestamp to transaction trigger true false union unique update using values "
          "varchar view when where with ",
      .line_comment = "--", .open_comment = "/*", .close_comment = "*/", .quotes = "\"'", .long_quotes = "'",
      .ignores_case = true },
    { .names = " css scss less ", .words = " !important @media @import @font-face @keyframes @supports ",
      .open_comment = "/*", .close_comment = "*/", .quotes = "\"'", .kind = EBB_LANGUAGE_DATA },
    { .names = " html xml svg xhtml vue svelte ", .words = "", .open_comment = "<!--", .close_comment = "-->",
      .quotes = "\"'", .long_quotes = "\"'", .kind = EBB_LANGUAGE_MARKUP },
    { .names = " diff patch ", .words = "", .quotes = "", .kind = EBB_LANGUAGE_DIFF },
    { 0 },
};

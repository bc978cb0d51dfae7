/* HTML entities (html_entity.h). */
#include "text/html_entity.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static const struct { const char *name, *text; } names[] = {
    { "amp", "&" }, { "lt", "<" }, { "gt", ">" }, { "quot", "\"" }, { "apos", "'" }, { "nbsp", "\u00A0" },
    { "copy", "\u00A9" }, { "reg", "\u00AE" }, { "trade", "\u2122" }, { "deg", "\u00B0" }, { "micro", "\u00B5" },
    { "para", "\u00B6" }, { "sect", "\u00A7" }, { "middot", "\u00B7" }, { "bull", "\u2022" }, { "hellip", "\u2026" },
    { "ndash", "\u2013" }, { "mdash", "\u2014" }, { "lsquo", "\u2018" }, { "rsquo", "\u2019" },
    { "ldquo", "\u201C" }, { "rdquo", "\u201D" }, { "laquo", "\u00AB" }, { "raquo", "\u00BB" },
    { "times", "\u00D7" }, { "divide", "\u00F7" }, { "plusmn", "\u00B1" }, { "minus", "\u2212" },
    { "frac12", "\u00BD" }, { "frac14", "\u00BC" }, { "frac34", "\u00BE" }, { "sup2", "\u00B2" }, { "sup3", "\u00B3" },
    { "euro", "\u20AC" }, { "pound", "\u00A3" }, { "yen", "\u00A5" }, { "cent", "\u00A2" },
    { "larr", "\u2190" }, { "uarr", "\u2191" }, { "rarr", "\u2192" }, { "darr", "\u2193" }, { "harr", "\u2194" },
    { "rArr", "\u21D2" }, { "hArr", "\u21D4" }, { "ne", "\u2260" }, { "le", "\u2264" }, { "ge", "\u2265" },
    { "asymp", "\u2248" }, { "infin", "\u221E" }, { "sum", "\u2211" }, { "prod", "\u220F" }, { "int", "\u222B" },
    { "radic", "\u221A" }, { "part", "\u2202" }, { "nabla", "\u2207" }, { "isin", "\u2208" }, { "forall", "\u2200" },
    { "exist", "\u2203" }, { "empty", "\u2205" }, { "cap", "\u2229" }, { "cup", "\u222A" }, { "sub", "\u2282" },
    { "alpha", "\u03B1" }, { "beta", "\u03B2" }, { "gamma", "\u03B3" }, { "delta", "\u03B4" }, { "epsilon", "\u03B5" },
    { "theta", "\u03B8" }, { "lambda", "\u03BB" }, { "mu", "\u03BC" }, { "pi", "\u03C0" }, { "rho", "\u03C1" },
    { "sigma", "\u03C3" }, { "tau", "\u03C4" }, { "phi", "\u03C6" }, { "omega", "\u03C9" }, { "Delta", "\u0394" },
    { "Sigma", "\u03A3" }, { "Omega", "\u03A9" }, { "auml", "\u00E4" }, { "ouml", "\u00F6" }, { "uuml", "\u00FC" },
    { "Auml", "\u00C4" }, { "Ouml", "\u00D6" }, { "Uuml", "\u00DC" }, { "szlig", "\u00DF" }, { "eacute", "\u00E9" },
    { "egrave", "\u00E8" }, { "agrave", "\u00E0" }, { "ccedil", "\u00E7" }, { "ntilde", "\u00F1" },
    { "AElig", "\u00C6" }, { "aelig", "\u00E6" }, { "oslash", "\u00F8" }, { "aring", "\u00E5" },
    { "Dcaron", "\u010E" }, { "check", "\u2713" }, { "cross", "\u2717" }, { "star", "\u2606" }, { "zwj", "\u200D" },
    { "HilbertSpace", "\u210B" }, { "DifferentialD", "\u2146" }, { "ClockwiseContourIntegral", "\u2232" },
    { "ngE", "\u2267\u0338" },
};

size_t ebb_html_entity_decode(const char *s, size_t n, char *out)
{
    char digits[12] = "";
    bool is_hex = n > 3 && (s[2] == 'x' || s[2] == 'X');
    size_t from = is_hex ? 3 : 2, len;
    unsigned long cp;

    if (n < 3 || s[0] != '&' || s[n - 1] != ';')
        return 0;
    if (s[1] == '#') {
        if (n - from > sizeof digits)
            return 0;
        memcpy(digits, s + from, n - from - 1);
        cp = strtoul(digits, NULL, is_hex ? 16 : 10);
        if (cp == '\n' || cp == '\r')
            cp = ' ';
        return ebb_utf8_encode(cp == 0 || cp > 0x10FFFF ||
                               (cp >= 0xD800 && cp < 0xE000) ? EBB_UTF8_BAD : (uint32_t)cp, out);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i].name) == n - 2 && memcmp(names[i].name, s + 1, n - 2) == 0) {
            len = strlen(names[i].text);
            memcpy(out, names[i].text, len);
            return len;
        }
    return 0;
}

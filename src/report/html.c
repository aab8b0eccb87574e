/* html.c - report.html: one file, nothing loaded from elsewhere, no script. The style has a light
 * and a dark look for screens of any width, and one for paper; colours are told apart by
 * colour-blind readers too, and never the only sign. */
#include "report/sections.h"

#include "report/escape.h"

static const char colours[] =
    ":root{color-scheme:light dark;--bg:#fff;--ink:#1b1f24;--dim:#57606a;--line:#d0d7de;"
    "--soft:#f6f8fa;--code:#f1f3f5;--link:#0550ae;--inbar:#fff;"
    "--bad:#8c1d0f;--bad-bg:#fdecea;--bad-line:#b3261e;"
    "--good:#0b5c3b;--good-bg:#e6f5ee;--good-line:#1a7f53;"
    "--open:#6b4a00;--open-bg:#fff6d6;--open-line:#a67c00;"
    "--quiet:#424a53;--quiet-bg:#f1f3f5;--quiet-line:#8c959f;"
    "--launch:#0072b2;--copy:#a85a00;--wait:#6e7781;--cause:#8c1d0f;--failed:#c13f92;"
    "--buffer:#5a8fc0}"
    "@media screen and (prefers-color-scheme:dark){:root{--bg:#0f1419;--ink:#e2e6ea;--dim:#9aa4ae;"
    "--line:#39434e;--soft:#171d24;--code:#1f2730;--link:#79b8ff;--inbar:#0f1419;"
    "--bad:#ffb4a8;--bad-bg:#3b1512;--bad-line:#d9534a;"
    "--good:#8fe0b8;--good-bg:#0f2f22;--good-line:#2f9e6e;"
    "--open:#ffd97a;--open-bg:#33270a;--open-line:#b48a1a;"
    "--quiet:#c0c8d0;--quiet-bg:#1f2730;--quiet-line:#6e7781;"
    "--launch:#4aa8dd;--copy:#d99a52;--wait:#8b949e;--cause:#ff7a6b;--failed:#e58cc8;"
    "--buffer:#5a8fc0}}";

static const char style[] =
    "*{box-sizing:border-box}"
    "body{margin:0 auto;max-width:1120px;padding:1.25rem 1rem 3rem;background:var(--bg);"
    "color:var(--ink);font:15px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,\"DejaVu Sans\","
    "sans-serif}"
    "a{color:var(--link)}a code{color:inherit}"
    "h1{font-size:1.55rem;line-height:1.3;margin:0 0 .9rem;overflow-wrap:anywhere}"
    "h2{font-size:1.2rem;margin:2.1rem 0 .6rem;padding-bottom:.25rem;"
    "border-bottom:2px solid var(--line)}"
    "h3{font-size:1rem;margin:1.4rem 0 .4rem}"
    "p{margin:.5rem 0;max-width:75ch;overflow-wrap:break-word}"
    "ul{margin:.4rem 0;padding-left:1.3rem}li{margin:.2rem 0;overflow-wrap:anywhere}"
    "code{font:.88em/1.4 ui-monospace,\"DejaVu Sans Mono\",monospace;background:var(--code);"
    "padding:.08em .3em;border-radius:3px;overflow-wrap:anywhere}"
    "dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(240px,1fr));gap:.45rem 1.5rem;"
    "margin:0;padding:.9rem 1rem;background:var(--soft);border:1px solid var(--line);"
    "border-radius:6px}"
    "dl div:last-child{grid-column:1/-1}"
    "dt{font-size:.78rem;color:var(--dim)}dd{margin:0;overflow-wrap:anywhere}"
    "nav ul{columns:15rem auto;padding:0;margin:.9rem 0 0;list-style:none;font-size:.9rem}nav "
    "li{margin:0 0 .2rem}"
    ".banner{max-width:none;margin:0 0 .9rem;padding:.6rem 1rem;font-weight:600;color:var(--open);"
    "background:var(--open-bg);border:2px dashed var(--open-line);border-radius:6px}"
    "details{margin:.6rem 0}summary{cursor:pointer;max-width:75ch}"
    ".wide{overflow-x:auto;margin:.6rem 0}"
    "table{border-collapse:collapse;width:100%;font-size:.9rem}"
    "th,td{text-align:left;vertical-align:top;padding:.38rem .6rem;"
    "border-bottom:1px solid var(--line)}"
    "th{background:var(--soft);font-weight:600;border-bottom:2px solid var(--dim)}"
    "td{min-width:3.2rem}td.t{min-width:11rem}"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}"
    "td.n,td code{white-space:nowrap}td:last-child code{white-space:normal}"
    ".badge{display:inline-block;padding:.05rem .5rem;border-radius:1rem;font-size:.78rem;"
    "font-weight:700;border:1px solid;white-space:nowrap}"
    ".bad{color:var(--bad);background:var(--bad-bg);border-color:var(--bad-line)}"
    ".good{color:var(--good);background:var(--good-bg);border-color:var(--good-line)}"
    ".quiet{color:var(--quiet);background:var(--quiet-bg);border-color:var(--quiet-line)}"
    ".open{color:var(--open);background:var(--open-bg);border-color:var(--open-line)}";

static const char figures[] =
    "figure{margin:1rem 0}figcaption,.legend{font-size:.82rem;color:var(--dim)}"
    "figure .wide{margin:0 0 .2rem}"
    ".legend{margin:.3rem 0}.key{display:inline-block;width:1.1em;height:.7em;margin:0 .35em 0 0}"
    ".legend>span{display:inline-block;margin-right:1.2em}"
    ".plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(280px,1fr));gap:0 1rem}"
    ".chain{max-width:46rem}.chain p{margin:.1rem 0;max-width:none}"
    ".box{padding:.5rem .8rem;border:1px solid var(--dim);border-radius:6px;"
    "background:var(--soft)}"
    ".box.culprit{border:2px solid var(--bad-line);background:var(--bad-bg)}"
    ".box.seen{border:2px solid var(--open-line);background:var(--open-bg)}"
    ".box small{color:var(--dim);overflow-wrap:anywhere}"
    ".chain .then{margin:.1rem 0 .1rem 1.4rem;padding:.35rem 0 .35rem .9rem;"
    "border-left:2px solid var(--dim)}"
    "svg{display:block;width:100%;height:auto;font:12px system-ui,\"DejaVu Sans\",sans-serif}"
    "svg text{fill:var(--ink)}svg .title{font-weight:700}"
    "svg .label{font-size:11px;fill:var(--dim);font-weight:600}"
    "svg .tick{font-size:11px;fill:var(--dim)}"
    "svg .mono{font:11px ui-monospace,\"DejaVu Sans Mono\",monospace}"
    "svg .inbar{font-size:11px;fill:var(--inbar)}"
    ".axis{stroke:var(--dim)}.grid{stroke:var(--line)}"
    ".median{stroke:var(--dim);stroke-dasharray:4 3}"
    ".point{fill:var(--launch)}.span{stroke:var(--launch);stroke-width:1.2}"
    ".marker{stroke:var(--ink);stroke-dasharray:2 2}"
    ".launch{fill:var(--launch);background:var(--launch)}"
    ".copy{fill:var(--copy);background:var(--copy)}"
    ".wait{fill:var(--wait);background:var(--wait)}"
    ".cause{fill:var(--cause);background:var(--cause)}"
    ".failed{fill:var(--failed);background:var(--failed)}"
    /* A line of the page's colour between neighbours: two launches never look like one. */
    "svg .work{stroke:var(--bg);stroke-width:1}svg .work.cause{stroke:var(--ink);stroke-width:1.5}"
    ".buffer{fill:var(--buffer);background:var(--buffer)}"
    ".buffer.freed{fill:var(--bg);background:var(--bg);stroke:var(--dim);stroke-dasharray:3 2}"
    ".key.freed{border:1px dashed var(--dim)}"
    ".buffer.named{fill:var(--cause);background:var(--cause)}"
    ".buffer.named.freed{fill:var(--bad-bg);stroke:var(--bad-line);stroke-dasharray:3 2}"
    ".fault{fill:var(--bad-bg);stroke:var(--bad-line)}";

static const char sizes[] =
    "@media (max-width:560px){body{padding:.9rem .75rem 2rem;font-size:14px}h1{font-size:1.25rem}"
    "thead{display:none}tr{display:block;padding:.4rem 0;border-bottom:2px solid var(--line)}"
    "td,td.n{display:grid;grid-template-columns:7.5rem 1fr;gap:.5rem;min-width:0;padding:.12rem 0;"
    "border:0;text-align:left;white-space:normal}td.t{min-width:0}td code{white-space:normal}"
    "td.e{display:none}td::before{content:attr(data-title);color:var(--dim);font-size:.82rem}"
    /* Figures shrink to the screen; their words must stay readable. */
    ".time .plain,.time .title,.time .tick{font-size:18px}.time .inbar{display:none}}"
    "@media print{body{max-width:none;padding:0;font-size:10pt}nav{display:none}"
    "h2,h3{break-after:avoid}tr,dl,.box,.plots figure{break-inside:avoid}"
    ".wide{overflow:visible}table{font-size:8pt}svg{min-width:0!important}"
    ".badge,svg,dl,th,code,.box,.banner,.key{print-color-adjust:exact;"
    "-webkit-print-color-adjust:exact}}";

static void print_head(const struct report_facts *facts, enum report_language language,
                       struct text *text)
{
    struct text title;
    text_addf(text, "<!DOCTYPE html>\n<html lang=\"%s\">\n<head>\n<meta charset=\"utf-8\"/>\n",
              language == REPORT_SPANISH ? "es" : "en");
    text_add(text,
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>");
    text_init(&title);
    words_fill(&title, words_get(language, WORD_TITLE), &facts->identity.id, 1);
    text_addf(&title, ": %s", words_outcome(language, facts->verdict.outcome));
    escape_markup(text, text_get(&title));
    text->failed = text->failed || title.failed;
    text_release(&title);
    text_add(text, "</title>\n<style>");
    text_add(text, colours);
    text_add(text, style);
    text_add(text, figures);
    text_add(text, sizes);
    text_add(text, "</style>\n</head>\n<body>\n<main>\n");
}

void report_html(const struct report_facts *facts, enum report_language language, struct text *text)
{
    struct text contents, body;
    struct doc doc = {
        .methods = &doc_html, .out = text, .language = language, .contents = &contents
    };
    text_init(&contents);
    text_init(&body);
    print_head(facts, language, text);
    document_head(&doc, facts);
    doc.out = &body;
    document_body(&doc, facts);
    text_addf(text, "<nav aria-label=\"%s\">\n<ul>\n", words_get(language, WORD_CONTENTS));
    text_add(text, text_get(&contents));
    text_add(text, "</ul>\n</nav>\n");
    text_add(text, text_get(&body));
    text_add(text, "</main>\n</body>\n</html>\n");
    text->failed = text->failed || contents.failed || body.failed;
    text_release(&contents);
    text_release(&body);
}

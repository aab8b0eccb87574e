/* html.c - report.html: one file, nothing loaded from elsewhere, no script. The style has one look
 * for screens of any width and one for paper; colours are told apart by colour-blind readers too,
 * and never the only sign. */
#include "report/sections.h"

#include "report/escape.h"

static const char style[] =
    ":root{color-scheme:light}"
    "*{box-sizing:border-box}"
    "body{margin:0 auto;max-width:1120px;padding:1.25rem 1rem 3rem;background:#fff;color:#1b1f24;"
    "font:15px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,\"DejaVu Sans\",sans-serif}"
    "h1{font-size:1.55rem;line-height:1.25;margin:0 0 .9rem;overflow-wrap:anywhere}"
    "h2{font-size:1.2rem;margin:2.1rem 0 .6rem;padding-bottom:.25rem;border-bottom:2px solid "
    "#d0d7de}"
    "h3{font-size:1rem;margin:1.4rem 0 .4rem}"
    "p{margin:.5rem 0;max-width:75ch;overflow-wrap:break-word}"
    "ul{margin:.4rem 0;padding-left:1.3rem}li{margin:.2rem 0;overflow-wrap:anywhere}"
    "code{font:.88em/1.4 ui-monospace,\"DejaVu Sans Mono\",monospace;background:#f1f3f5;"
    "padding:.08em .3em;border-radius:3px;overflow-wrap:anywhere}"
    "dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(240px,1fr));gap:.45rem 1.5rem;"
    "margin:0;padding:.9rem 1rem;background:#f6f8fa;border:1px solid #d0d7de;border-radius:6px}"
    "dl "
    "div:last-child{grid-column:1/"
    "-1}dt{font-size:.78rem;color:#57606a}dd{margin:0;overflow-wrap:anywhere}"
    ".wide{overflow-x:auto;margin:.6rem 0}"
    "table{border-collapse:collapse;width:100%;font-size:.9rem}"
    "th,td{text-align:left;vertical-align:top;padding:.38rem .6rem;border-bottom:1px solid #d8dee4}"
    "th{background:#f6f8fa;font-weight:600;border-bottom:2px solid #afb8c1}"
    "td{min-width:3.2rem}td.t{min-width:11rem}td.n,th.n{text-align:right;font-variant-numeric:"
    "tabular-nums}"
    "td.n,td code{white-space:nowrap}td:last-child code{white-space:normal}"
    ".badge{display:inline-block;padding:.05rem .5rem;border-radius:1rem;font-size:.78rem;"
    "font-weight:700;border:1px solid;white-space:nowrap}"
    ".bad{color:#8c1d0f;background:#fdecea;border-color:#b3261e}"
    ".good{color:#0b5c3b;background:#e6f5ee;border-color:#1a7f53}"
    ".quiet{color:#424a53;background:#f1f3f5;border-color:#8c959f}"
    ".open{color:#6b4a00;background:#fff6d6;border-color:#a67c00}"
    "figure{margin:1rem 0}figcaption{font-size:.82rem;color:#57606a}"
    "figure .wide{margin:0 0 .2rem}"
    ".plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(280px,1fr));gap:0 1rem}"
    "svg{display:block;width:100%;height:auto;font:12px system-ui,\"DejaVu Sans\",sans-serif}"
    "svg text{fill:#1b1f24}svg .title{font-weight:700}"
    "svg .label{font-size:11px;fill:#57606a;font-weight:600}svg .tick{font-size:11px;fill:#424a53}"
    "svg .mono{font:11px ui-monospace,\"DejaVu Sans Mono\",monospace}svg "
    ".inbar{font-size:11px;fill:#fff}"
    ".box{fill:#f6f8fa;stroke:#57606a;rx:5px}.box.cause{fill:#fdecea;stroke:#b3261e;stroke-width:2}"
    ".box.seen{fill:#fff6d6;stroke:#a67c00;stroke-width:2}"
    ".arrow{stroke:#57606a;stroke-width:2}.head{fill:#57606a}"
    ".axis{stroke:#57606a}.grid{stroke:#d8dee4}.median{stroke:#57606a;stroke-dasharray:4 3}"
    ".point{fill:#0072b2}.span{stroke:#0072b2;stroke-width:1.2}"
    ".marker{stroke:#1b1f24;stroke-dasharray:2 2}"
    ".launch{fill:#0072b2}.copy{fill:#a85a00}.wait{fill:#6e7781}"
    ".work.cause{fill:#8c1d0f;stroke:#1b1f24;stroke-width:1.5}"
    ".failed{fill:#c13f92}"
    ".buffer{fill:#5a8fc0}.buffer.freed{fill:#fff;stroke:#57606a;stroke-dasharray:3 2}"
    ".buffer.named{fill:#8c1d0f}.buffer.named.freed{fill:#fdecea;stroke:#8c1d0f;stroke-dasharray:3 "
    "2}"
    ".fault{fill:#fdecea;stroke:#8c1d0f}"
    "@media (max-width:560px){body{padding:.9rem .75rem 2rem;font-size:14px}h1{font-size:1.3rem}"
    "thead{display:none}tr{display:block;padding:.4rem 0;border-bottom:2px solid #d0d7de}"
    "td,td.n{display:grid;grid-template-columns:7.5rem 1fr;gap:.5rem;min-width:0;padding:.12rem 0;"
    "border:0;text-align:left;white-space:normal}td.t{min-width:0}td code{white-space:normal}"
    "td::before{content:attr(data-title);color:#57606a;font-size:.82rem}}"
    "@media print{body{max-width:none;padding:0;font-size:10pt}"
    "h2,h3{break-after:avoid}tr,figure,dl{break-inside:avoid}"
    ".wide{overflow:visible}table{font-size:8pt}svg{min-width:0!important}"
    ".badge,svg,dl,th,code{print-color-adjust:exact;-webkit-print-color-adjust:exact}}";

void report_html(const struct report_facts *facts, enum analyze_language language,
                 struct text *text)
{
    struct doc doc = { .methods = &doc_html, .out = text, .language = language };
    text_addf(text, "<!DOCTYPE html>\n<html lang=\"%s\">\n<head>\n<meta charset=\"utf-8\"/>\n",
              language == ANALYZE_SPANISH ? "es" : "en");
    text_add(text,
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>");
    struct text title;
    text_init(&title);
    words_fill(&title, words_get(language, WORD_TITLE), &facts->identity.id, 1);
    escape_markup(text, text_get(&title));
    text->failed = text->failed || title.failed;
    text_release(&title);
    text_add(text, "</title>\n<style>");
    text_add(text, style);
    text_add(text, "</style>\n</head>\n<body>\n<main>\n");
    document_print(&doc, facts);
    text_add(text, "</main>\n</body>\n</html>\n");
}

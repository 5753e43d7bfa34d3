"""The looks of the page that `trace_html.py` makes: light and dark, from a phone's width up."""

from __future__ import annotations

STYLE = """
:root{--ground:#fbfaf8;--card:#fff;--ink:#1d2129;--quiet:#667080;--line:#e2e0db;--grid:#ebe9e4;
--turn:#5b6ee1;--call:#1f9d8f;--write:#c98a12;--worker:#aeb6c6;--bad:#cf3f45;--person:#8b8f99;
--on:#fff;--tint:#f3f1ec}
@media (prefers-color-scheme:dark){:root{--ground:#14161b;--card:#1c1f26;--ink:#e7e9ee;--quiet:#97a0b0;--line:#2e333d;
--grid:#242831;--turn:#8291f5;--call:#3cbfae;--write:#e0aa3e;--worker:#4d5666;--bad:#f0767b;--person:#7d8492;
--on:#11131a;--tint:#22262e}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:76rem;padding:1.5rem clamp(.8rem,3vw,2rem) 9rem;background:var(--ground);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.7rem;margin:.1rem 0 1rem;letter-spacing:-.01em}
h2{font-size:1.02rem;margin:0 0 .5rem}h3{font-size:.86rem;margin:0}
h4{font-size:.74rem;margin:.5rem 0 .15rem;color:var(--quiet);font-weight:600}
a{color:inherit;text-decoration-color:var(--quiet);text-underline-offset:.18em}
:focus-visible{outline:2px solid var(--turn);outline-offset:2px;border-radius:3px}
.run{margin:0;color:var(--quiet);font-size:.86rem;font-variant-numeric:tabular-nums}
.pill{font-size:.8rem;font-weight:600;vertical-align:.3em;padding:.12rem .6rem;border-radius:1rem;color:var(--on);
background:var(--quiet)}
.pill.done{background:var(--call)}.pill.failed,.pill.cancelled{background:var(--bad)}.pill.waiting{background:var(--write)}
dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.9rem 1.4rem;margin:0 0 1rem}
dl .model{grid-column:span 2}
dt{color:var(--quiet);font-size:.76rem}dd{margin:0;font-weight:600;font-variant-numeric:tabular-nums}
pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere;font:12.5px/1.5 ui-monospace,Menlo,Consolas,monospace;
background:var(--tint);border-radius:6px;padding:.5rem .7rem;max-height:22rem;overflow:auto}
.outcome{margin:0 0 1rem}.outcome summary{cursor:pointer;font-weight:600}
.bad{color:var(--bad)}.outcome.bad pre{color:var(--ink);border-left:3px solid var(--bad)}
.quiet{color:var(--quiet)}
section{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:1rem 1.1rem;margin:0 0 1rem}
section ul{margin:0;padding-left:1.1rem}section li{margin:.15rem 0}
.timeline{padding-bottom:.7rem}
.timeline .legend{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;list-style:none;padding:0;margin:0 0 .8rem;
color:var(--quiet);font-size:.78rem}
.legend .bar{position:static;display:inline-block;width:1.3rem;height:.72rem;min-width:0;margin-right:.4rem;
vertical-align:-.05rem;padding:0}
.scroll{overflow-x:auto}
.lanes{position:relative;min-width:40rem;margin-bottom:1.3rem}
.axis{position:relative;height:1.4rem;margin-bottom:.2rem;font-size:.72rem;color:var(--quiet)}
.axis i{position:absolute;top:0;bottom:0;font-style:normal}
.axis i b{font-weight:400;position:absolute;white-space:nowrap;transform:translateX(-50%)}
.axis i:first-child b{transform:none}.axis i:last-child b{transform:translateX(-100%)}
.gap{position:absolute;top:1.4rem;bottom:0;border-inline:1px dashed var(--person);opacity:.9;background:
repeating-linear-gradient(135deg,transparent 0 7px,var(--grid) 7px 9px)}
.gap b{position:absolute;top:100%;left:50%;transform:translateX(-50%);font-size:.7rem;font-weight:600;
white-space:nowrap;background:var(--card);padding:0 .25rem;border-radius:3px;z-index:1}
.lane{position:relative;border-top:1px solid var(--grid);padding:.35rem 0 .45rem}
.lane h3{position:sticky;left:0;width:max-content;max-width:100%;padding-left:calc(var(--depth)*1rem);
margin-bottom:.2rem;background:var(--card);border-radius:3px}
.lane h3 span,.lane h3 em{color:var(--quiet);font-weight:400;font-style:normal}.lane h3 em{color:var(--bad)}
.bars{position:relative;height:calc(var(--rows)*1.55rem)}
.bar{position:absolute;top:calc(var(--row)*1.55rem);height:1.35rem;border-radius:3px;padding:0 .3rem;
font-size:.72rem;line-height:1.35rem;color:var(--on);background:var(--call);white-space:nowrap;overflow:hidden;
text-overflow:clip;text-decoration:none;min-width:4px;border:1px solid transparent}
.bars .bar:hover,.bars .bar:focus{filter:brightness(1.12);border-color:var(--ink);z-index:2}
.bar.turn{background:var(--turn)}.bar.write{background:var(--write)}
.bar.worker{background:color-mix(in srgb,var(--worker) 45%,transparent);color:var(--ink);border-color:var(--worker)}
.bar.question{color:var(--ink);border-color:var(--person);background:repeating-linear-gradient(135deg,
color-mix(in srgb,var(--person) 45%,var(--card)) 0 4px,var(--card) 4px 9px);
text-shadow:0 0 3px var(--card),0 0 3px var(--card)}
.bar.refused{border-color:var(--bad)}
.bar.failed{background:var(--bad);color:var(--on)}
.bar.worker.failed{background:color-mix(in srgb,var(--bad) 25%,transparent);color:var(--ink);border-color:var(--bad)}
.bar.cut{border:1px dashed var(--person);background:
repeating-linear-gradient(135deg,transparent 0 5px,var(--line) 5px 7px)}
.tip{display:none;position:fixed;inset:auto 0 0 0;z-index:9;padding:.7rem clamp(.8rem,3vw,2rem);background:var(--card);
color:var(--ink);border-top:2px solid var(--turn);box-shadow:0 -6px 24px #0003;white-space:normal;
font-size:.85rem;line-height:1.45;text-shadow:none;max-height:8.5rem;overflow:hidden}
.tip span{display:block;color:var(--quiet);font:12px/1.45 ui-monospace,Menlo,Consolas,monospace}
.bar:hover>.tip,.bar:focus>.tip{display:block}
.lanes:has(.bar:hover) .bar:focus:not(:hover)>.tip{display:none}
.record details{border-left:2px solid var(--line);padding-left:.8rem;margin:.2rem 0}
.record details.turn{border-color:var(--turn)}.record details.call{border-color:var(--call)}
.record details.write{border-color:var(--write)}.record
details.question{border-left-style:dashed;border-color:var(--person)}
.record details.failed{border-color:var(--bad)}
.record summary{cursor:pointer;padding:.1rem .2rem;border-radius:4px}
.record summary:hover{background:var(--tint)}
.record summary time{float:right;color:var(--quiet);font-size:.78rem;font-variant-numeric:tabular-nums}
.record details:has(>.body>:target)>summary{background:color-mix(in srgb,var(--turn) 22%,transparent)}
.body{padding-bottom:.2rem}.body>a{scroll-margin-top:40vh}
@media (max-width:40rem){body{font-size:14px}section{padding:.8rem .7rem;border-radius:8px}
.record details{padding-left:.5rem}.lanes{min-width:34rem}}
@media print{.tip{display:none!important}}
"""

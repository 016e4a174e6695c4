#include "report/page/style.h"

namespace sluice {

std::string_view page_css() {
  return R"(
:root{--back:#f5f7f9;--card:#fff;--ink:#1d2630;--soft:#5a6673;--rule:#e1e6eb;--mark:#2b6cb0;
--tint:#eaf2fb}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);font:15px/1.5 system-ui,sans-serif;
overflow-wrap:break-word}
main{max-width:1080px;margin:0 auto;padding:24px 16px 48px}
header h1{margin:0;font-size:1.6rem;line-height:1.2}
header p{margin:.3rem 0 1rem;color:var(--soft)}
section{background:var(--card);border:1px solid var(--rule);border-radius:10px;
padding:16px 20px;margin:0 0 16px}
h2{margin:0 0 .6rem;font-size:1.1rem}
p{margin:.4rem 0}
.statement{border-left:4px solid var(--mark);background:var(--tint);border-radius:0 8px 8px 0;
padding:10px 16px;margin:0 0 12px}
.highlights{display:grid;grid-template-columns:repeat(auto-fit,minmax(132px,1fr));gap:12px 20px;
margin:0}
.highlights dt{color:var(--soft);font-size:.82rem}
.highlights dd{margin:0;font-size:1.3rem;font-weight:600;font-variant-numeric:tabular-nums}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));
gap:8px 24px}
figure{margin:0 0 8px;min-width:0}
figcaption{font-weight:600;font-size:.92rem;margin:.2rem 0 .4rem}
svg.chart{display:block;width:100%;height:auto}
.chart .name{fill:var(--ink);font-size:12.5px}
.chart .inside{fill:var(--card);font-weight:600}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 16px;margin:.3rem 0;padding:0;
font-size:.85rem;color:var(--soft)}
.legend i{display:inline-block;width:12px;height:12px;border-radius:3px;margin-right:6px;
vertical-align:-1px;background:currentColor}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums;margin:.3rem 0}
th,td{padding:4px 14px 4px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--rule)}
tbody th{font-weight:400;color:var(--soft)}
td{overflow-wrap:anywhere;min-width:4.5em}
thead th{font-weight:600;white-space:nowrap}
details{margin:.3rem 0}
summary{cursor:pointer;color:var(--soft);font-size:.85rem}
@media (prefers-color-scheme:dark){
:root{--back:#12161b;--card:#1a2027;--ink:#e6ebf0;--soft:#a3aebb;--rule:#2d353f;--mark:#7fb2ee;
--tint:#1e2a38}
}
@media (max-width:640px){
main{padding:16px 10px 32px}
section{padding:12px 12px}
.chart.wide text{font-size:23px}
.chart.wide .name{font-size:24px}
.chart.wide .inside{font-size:17px}
th,td{padding-right:10px}
}
)";
}

}  // namespace sluice

"""What every report tells: the verdict, its extent, the cost, the ending."""

MESSAGES: dict[str, str] = {
    "{verdict} in {extent}": "{verdict}（共 {extent}）",
    "{steps} ({measured} measured)": "{steps}，量測了其中 {measured} 步",
    "nothing to judge: no training step was recorded": "無從判斷：沒有記錄到任何訓練步",
    "not judged: no rule has looked at the run": "尚未判斷：還沒有規則檢查過這次執行",
    "not judged: none of {known} rules could be evaluated": ("未能判斷：{known} 條規則都無法評估"),
    "nothing found by {evaluated} of {rules}": "{rules}中有 {evaluated} 條完成評估，未發現問題",
    "{findings}, explaining {more}": "{findings}，連帶解釋{more}",
    "{n} error": "{n} 個錯誤",
    "{n} errors": "{n} 個錯誤",
    "{n} warning": "{n} 個警告",
    "{n} warnings": "{n} 個警告",
    "{n} info": "{n} 則提示",
    "error": "錯誤",
    "warning": "警告",
    "info": "提示",
    "{n} finding": "{n} 項診斷",
    "{n} findings": "{n} 項診斷",
    "{n} more finding": "另外 {n} 項診斷",
    "{n} more findings": "另外 {n} 項診斷",
    "{n} step": "{n} 步",
    "{n} steps": "{n} 步",
    "{n} measured step": "{n} 個量測步",
    "{n} measured steps": "{n} 個量測步",
    "{n} rule": "{n} 條規則",
    "{n} rules": "{n} 條規則",
    "step {step}": "第 {step} 步",
    "steps {first} to {last}, in {steps}": "第 {first} 到 {last} 步之間，共 {steps}",
    "infinite": "無限大",
    "-infinite": "負無限大",
    "{name} {value} (threshold {limit})": "{name} {value}（門檻 {limit}）",
    "threshold {name} {value}": "門檻 {name} {value}",
    "everything": "全部",
    "whole run": "整次執行",
    "the whole run": "整次執行",
    "training run": "訓練執行",
    "{kind}, layer {place} of {layers}": "{kind}，{layers} 層中的第 {place} 層",
    "The recording has no end: the run goes on or was killed; judged as far as written.": (
        "記錄沒有結尾：訓練仍在進行，或已被強制終止；以下依目前寫入的內容判斷。"
    ),
    "The script ended with exit code {code}.": "腳本結束時的結束碼為 {code}。",
    "measuring cost {percent:.1f} % of the training time": "量測佔訓練時間的 {percent:.1f} %",
    "saving and judging took {percent:.1f} % of the whole time": (
        "儲存與判斷佔總時間的 {percent:.1f} %"
    ),
    "{one}, {other}": "{one}，{other}",
    "{costs}; listening at every step not included": "{costs}；不含每一步的監聽成本",
    "{costs}; listening at the other steps about {percent:.1f} %": (
        "{costs}；其餘各步的監聽約占 {percent:.1f} %"
    ),
    "{costs}, which alone is more than the budget for measuring": "{costs}，單是這項就超過測量預算",
    "{cost} (runs under {steps} steps are exempt from the budget)": (
        "{cost}（少於 {steps} 步的執行不受預算限制）"
    ),
}

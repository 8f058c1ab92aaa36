"""`traindx show`: a layer or parameter, or all layers."""

MESSAGES: dict[str, str] = {
    "The run knows no model, so there is nothing to show of `{name}`.": (
        "這次執行中沒有任何模型，無法顯示 `{name}`。"
    ),
    "There is no layer or parameter `{name}` in {models}.": (
        "{models} 中沒有名為 `{name}` 的層或參數。"
    ),
    "There is no layer or parameter `{name}` in {models}; the nearest are {nearest}.": (
        "{models} 中沒有名為 `{name}` 的層或參數；最接近的是 {nearest}。"
    ),
    "no model was seen": "沒有看到任何模型",
    "nothing was measured here": "此處沒有任何量測",
    "options": "選項",
    "called": "呼叫",
    "parameter": "參數",
    "measured": "項目",
    "first": "最初",
    "last": "最後",
    "least": "最小",
    "greatest": "最大",
    "layer": "層",
    "found": "診斷",
    "output RMS": "輸出 RMS",
    "gradient RMS": "梯度 RMS",
    "log: the line is drawn on a logarithmic scale": "log：此線以對數刻度繪製",
    "x: a value that is not finite": "x：非有限值",
    "never seen called": "從未看到它被呼叫",
    "once in a forward pass": "每次前向傳播一次",
    "{n} times in a forward pass": "每次前向傳播 {n} 次",
    "a single number": "單一數值",
    "frozen": "已凍結",
    "trained by {optimizers}": "由 {optimizers} 訓練",
    "held by no optimizer": "不屬於任何最佳化器",
    "events": "事件",
    "step {step}: {point} not measured: {reason}": "第 {step} 步：未量測 {point}：{reason}",
    "step {step}: the first value that is not finite arose here ({detail})": (
        "第 {step} 步：第一個非有限值出現在此（{detail}）"
    ),
    "{n} time": "{n} 次",
    "{n} times": "{n} 次",
    "evaluated {times}, last before step {step}": "評估過 {times}，最近一次在第 {step} 步之前",
}

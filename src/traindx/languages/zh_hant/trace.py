"""`traindx norm trace` and `traindx norm presets`."""

MESSAGES: dict[str, str] = {
    "The gradient at the output needs the output's shape {wanted}; got {shape}.": (
        "輸出處的梯度須與輸出同形狀 {wanted}；得到 {shape}。"
    ),
    "A trace shows every number, of {most} at most; `{text}` has {count}. Give a part.": (
        "追蹤會顯示每個數，至多 {most} 個；`{text}` 有 {count} 個。請只給一部分。"
    ),
    "Running statistics are a mean and a variance, and power vectors are u and v.": (
        "running 統計量包括平均值和變異數，冪迭代向量包括 u 和 v。"
    ),
    "A running variance is 0 or more; got {least:g}.": "running 變異數不小於 0；得到 {least:g}。",
    "An option is `NAME=VALUE`, as `eps=1e-3`; got {text}.": (
        "選項為 `NAME=VALUE`，例如 `eps=1e-3`；得到 {text}。"
    ),
    "{text} is none of {known}.": "{text} 不是 {known} 之一。",
    "The options {options} do not make a {name}: {why}.": (
        "選項 {options} 無法構成 {name}：{why}。"
    ),
    "`{text}` is no array of numbers ({why}). Write rows as `1,2;3,0`, JSON as `[[1, 2], [3, 0]]`, "
    "or name a .csv or .npy file.": (
        "`{text}` 不是數字陣列（{why}）。請以 `1,2;3,0` 寫列，以 `[[1, 2], [3, 0]]` 寫 JSON，"
        "或指定 .csv 或 .npy 檔。"
    ),
    "name": "名稱",
    "formula": "公式",
    "value": "值",
    "Computed in float64; shown to {digits} significant digits.": (
        "以 float64 計算；顯示 {digits} 位有效數字。"
    ),
    "`traindx norm presets NAME` shows the options of one.": (
        "`traindx norm presets NAME` 顯示其中一個的選項。"
    ),
    "must be given": "必須給定",
}

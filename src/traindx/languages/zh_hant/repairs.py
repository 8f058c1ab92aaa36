"""`traindx norm recalibrate`, `traindx norm fold`, and the checkpoints they read."""

MESSAGES: dict[str, str] = {
    # recalibrate
    "Recalibration needs BatchNorm layers that keep running statistics; {model} has none. Other "
    "normalizations do the same in training and evaluation.": (
        "重新校準需要保有 running 統計量的 BatchNorm 層；{model} 沒有。"
        "其他正規化在訓練與評估時做相同的事。"
    ),
    "No statistics came of {batches} batches, of which {skipped} held numbers that are not finite. "
    "Give a loader of finite batches that reach {layers}.": (
        "{batches} 個批次未得到任何統計量，其中 {skipped} 個含有非有限值。"
        "請給會經過 {layers} 的有限批次。"
    ),
    "`{target}` needs to return a model and a loader, and may return a function of the model that "
    "evaluates it: `return model, loader, accuracy`.": (
        "`{target}` 須回傳模型與 loader，並可回傳評估模型的函數：`return model, loader, accuracy`。"
    ),
    "The evaluation gives a `{kind}` and no number.": "評估給出 `{kind}`，而不是數字。",
    "There is no folder `{folder}`.": "沒有資料夾 `{folder}`。",
    "{n} layer": "{n} 層",
    "{n} layers": "{n} 層",
    "{n} batch": "{n} 個批次",
    "{n} batches": "{n} 個批次",
    "{layers} recalibrated on {batches}": "以 {batches}重新校準了 {layers}",
    "gap before": "先前差距",
    "evaluation: {before} before, {after} after": "評估：之前 {before}，之後 {after}",
    "{batches} left out: not finite in some layer": "略過 {batches}：在某層中含非有限值",
    "never called, left as they were: {layers}": "從未被呼叫，保持原樣：{layers}",
    "gap: how far evaluation was from training, in standard deviations of the normalized values": (
        "差距：評估與訓練相差多少，以正規化後數值的標準差計"
    ),
    "saved in {file}": "已存於 {file}",
    # fold
    "Folding needs BatchNorm layers; {model} has none.": "合併需要 BatchNorm 層；{model} 沒有。",
    "The folded model differs by {difference:.3g}, where rounding allows {allowed:.3g}: something "
    "between its layers cannot be seen. It is not given out.": (
        "合併後的模型相差 {difference:.3g}，而捨入只容許 {allowed:.3g}："
        "層與層之間有看不到的運算。因此不予交出。"
    ),
    "its input is not the output of a convolution or linear layer": (
        "其輸入不是卷積層或線性層的輸出"
    ),
    "it keeps no running statistics, so it depends on the batch in evaluation, too": (
        "它不保有 running 統計量，因此在評估時也取決於批次"
    ),
    "it was not called": "它未被呼叫",
    "it or {layer} is called several times": "它或 {layer} 被呼叫多次",
    "the output of {layer} is used elsewhere, too": "{layer} 的輸出也用於他處",
    "it does not normalize the channels of {layer}": "它正規化的不是 {layer} 的通道",
    "the weight of {layer} is shared or parametrized": "{layer} 的權重是共用的或經參數化",
    "its statistics are not finite, or its variance is negative": (
        "其統計量非有限值，或變異數為負"
    ),
    "{folded} of {total} BatchNorm layers folded": "{total} 個 BatchNorm 層中合併了 {folded} 個",
    "{norm} into {layer}": "{norm} 併入 {layer}",
    "folded": "已合併",
    "{norm}: {reason}": "{norm}：{reason}",
    "left as they were": "保持原樣",
    "greatest difference of an output {difference}; rounding allows {allowed}": (
        "輸出的最大差異 {difference}；捨入容許 {allowed}"
    ),
    "proof": "證明",
    # checkpoints
    "`{file}` holds no weights: {content}. A state is `model.state_dict()`, itself or under "
    "`state_dict` or `model`.": (
        "`{file}` 不含權重：{content}。狀態即 `model.state_dict()`，"
        "可為其本身或在 `state_dict`、`model` 之下。"
    ),
    "`{file}` is of another model: {what}.": "`{file}` 屬於另一個模型：{what}。",
    "not in the model": "模型中沒有",
    "of another shape": "形狀不同",
    "{what} {names}": "{what} {names}",
    "{names} and {n} more": "{names} 及另外 {n} 個",
    "`{file}` exists. Name a new file.": "`{file}` 已存在。請指定新檔案。",
    "it is damaged, or no checkpoint of torch": "它已損壞，或不是 torch 的檢查點",
    "it holds more than weights, and nothing of it was run ({what})": (
        "它不只含權重，其中內容均未執行（{what}）"
    ),
    "A .safetensors file is read by the package safetensors. Install it.": (
        ".safetensors 檔由套件 safetensors 讀取。請安裝它。"
    ),
    "a dict of {keys}": "含 {keys} 的 dict",
    "an empty dict": "空的 dict",
    "a {kind}": "一個 {kind}",
}

"""`traindx.watch`: what it takes, and how it is used."""

MESSAGES: dict[str, str] = {
    "`watch` takes a model, a `torch.nn.Module`, or a list of some; `model` is {what}. {repair}": (
        "`watch` 需要一個模型（`torch.nn.Module`）或模型的串列；`model` 是{what}。{repair}"
    ),
    "`watch` takes a model that is trained; `model` is {what} without parameters. Give the module "
    "that holds them.": (
        "`watch` 需要一個會被訓練的模型；`model` 是{what}，沒有參數。請給持有參數的模組。"
    ),
    "`watch` takes an optimizer, a `torch.optim.Optimizer`, or a list of some; `optimizer` is "
    "{what}. {repair}": (
        "`watch` 需要一個最佳化器（`torch.optim.Optimizer`）或其串列；"
        "`optimizer` 是{what}。{repair}"
    ),
    "Give the optimizer inside of it: `optimizer=....optimizer`.": (
        "請給其中的最佳化器：`optimizer=....optimizer`。"
    ),
    "Leave it out, and those that hold the model's parameters are watched.": (
        "可以省略它，這樣會監看持有模型參數的最佳化器。"
    ),
    "the class `{name}`": "類別 `{name}` 本身",
    "a `{name}`": "一個 `{name}`",
    "Give an instance of it: `model = {name}(...)`.": "請給它的實例：`model = {name}(...)`。",
    "A name for the run goes into `name=`.": "這次執行的名稱請放在 `name=`。",
    "The optimizer comes second: `traindx.watch(model, optimizer)`.": (
        "最佳化器放在第二個位置：`traindx.watch(model, optimizer)`。"
    ),
    "Give the object that you call on each batch.": "請給每個批次所呼叫的那個物件。",
    "Put several models in a list: `traindx.watch([a, b])`.": (
        "多個模型請放進串列：`traindx.watch([a, b])`。"
    ),
    "This watch is closed. Begin another: `with traindx.watch(model) as w:`.": (
        "這次監看已結束。請重新開始：`with traindx.watch(model) as w:`。"
    ),
    "Cannot write `{file}`: {why}.": "無法寫入 `{file}`：{why}。",
    "closed": "已結束",
    "watching": "監看中",
    "<traindx watch {name}, {state}: {verdict}>": "<traindx watch {name}，{state}：{verdict}>",
    "`traindx run` watches this script, so `traindx.watch` looks at that run as it is, and ends "
    "nothing.": (
        "`traindx run` 已在監看這個腳本，因此 `traindx.watch` 只查看這次執行的現況，"
        "不會結束任何監看。"
    ),
    "One training at a time is watched, and the watch {name} is not closed. Close it first: "
    "`w.close()`, or leave its `with` block.": (
        "同一時間只能監看一個訓練，而監看 {name} 尚未結束。"
        "請先以 `w.close()` 結束它，或離開它的 `with` 區塊。"
    ),
    "The watch that was left open is closed: {verdict}.": "未結束的監看已自動結束：{verdict}。",
    "The watch that was left open is closed: {verdict}. It is saved in {file}.": (
        "未結束的監看已自動結束：{verdict}。已存入 {file}。"
    ),
}

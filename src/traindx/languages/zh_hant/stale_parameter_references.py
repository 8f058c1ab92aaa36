"""O003 stale-parameter-references."""

MESSAGES: dict[str, str] = {
    "{optimizer} holds {stale} that belong to no model and get no gradient, while no "
    "optimizer holds {unheld} of {model} that got one": (
        "{optimizer} 持有 {stale}，既不屬於任何模型，也得不到梯度；"
        "而 {model} 中有 {unheld}得到了梯度，卻不在任何最佳化器中"
    ),
    "shapes match for {params}": "形狀相符的有 {params}",
    "{n} tensor": "{n} 個張量",
    "{n} tensors": "{n} 個張量",
    "{optimizer} was built before these parameters of {model} were made.": (
        "{optimizer} 建立時，{model} 的這些參數還不存在。"
    ),
    "Build {kind} after the model is complete: `optimizer = {kind}({model}.parameters(), …)`.": (
        "請在模型完成之後再建立 {kind}：`optimizer = {kind}({model}.parameters(), …)`。"
    ),
    "a backbone left untrained on purpose": "刻意不訓練的骨幹網路",
    "tensors outside any module": "不屬於任何模組的張量",
}

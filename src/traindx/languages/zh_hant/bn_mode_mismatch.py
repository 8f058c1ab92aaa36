"""N004 bn-mode-mismatch."""

MESSAGES: dict[str, str] = {
    "{affected} of {layers} normalization layers of {model}": (
        "{model} 的 {layers} 個正規化層中有 {affected} 個"
    ),
    "{layers} have trained in eval mode for {steps} steps (threshold {threshold:g}) after training "
    "in train mode before": (
        "{layers}原先以 train 模式訓練，之後卻以 eval 模式訓練了 {steps} 步（門檻 {threshold:g}）"
    ),
    "An evaluation switched {model} to eval mode and nothing switched it back.": (
        "某次評估把 {model} 切到 eval 模式，之後沒有切回來。"
    ),
    "Call `{model}.train()` after each evaluation, at the start of the epoch.": (
        "每次評估之後、在每個 epoch 開始時呼叫 `{model}.train()`。"
    ),
    "{layers} have trained in eval mode for {steps} steps (threshold {threshold:g}) with running "
    "statistics that no batch has ever updated": (
        "{layers}以 eval 模式訓練了 {steps} 步（門檻 {threshold:g}），"
        "而 running 統計量從未被任何批次更新過"
    ),
    "{model} was put in eval mode before training, so nothing is normalized by its data.": (
        "{model} 在訓練前就被設為 eval 模式，因此沒有依資料做正規化。"
    ),
    "Call `{model}.train()` before training.": "在訓練之前呼叫 `{model}.train()`。",
    "{layers} have updated their running statistics for {steps} steps (threshold {threshold:g}) "
    "without any change": (
        "{layers}更新 running 統計量已 {steps} 步（門檻 {threshold:g}），但數值毫無變化"
    ),
    "`momentum=0` gives new batches no weight: in PyTorch it is the weight of the new value.": (
        "`momentum=0` 使新批次毫無權重：在 PyTorch 中，momentum 是新值的權重。"
    ),
    "Use `momentum=0.1`, which in other frameworks is called 0.9.": (
        "請用 `momentum=0.1`，在其他框架中寫作 0.9。"
    ),
    "pretrained layers kept in eval mode": "維持 eval 模式的預訓練層",
    "layers frozen on purpose": "刻意凍結的層",
}

"""What capture notes: what was not measured and why, and when it stepped aside."""

MESSAGES: dict[str, str] = {
    "torch.compile is used: activations are not measured": (
        "使用了 torch.compile：不量測活化值（activations）"
    ),
    "a CUDA graph is captured: what its replays do is not measured": (
        "正在擷取 CUDA graph：不量測其重播（replay）時所做的事"
    ),
    "the last numbers could not be read and are lost: {e}": ("最後的數值無法讀取，已遺失：{e}"),
    "measuring stopped at step {step}: {error}": "量測在第 {step} 步停止：{error}",
    "{what}. Your training goes on.": "{what}。訓練繼續進行。",
    "parameters change without a call of an optimizer's `step` that can be seen (updated by hand, "
    "or a compiled step): steps are counted from their changes": (
        "參數有變化，卻看不到最佳化器的 `step` 呼叫（手動更新，或編譯過的 step）："
        "步數改由參數的變化推算"
    ),
    "models are called in another thread, too: only one thread's training is measured": (
        "另一個執行緒也在呼叫模型：只量測其中一個執行緒的訓練"
    ),
    "the budget of {budget:.0%} was exceeded": "超出了 {budget:.0%} 的預算",
    "{count} steps were measured at the interval before; the longer a run, the fewer": (
        "先前的間隔已量測 {count} 步；執行越長，量測越疏"
    ),
    "This version of torch cannot be watched: {error}. Training goes on.": (
        "無法監看這個版本的 torch：{error}。訓練繼續進行。"
    ),
    "The run could not be judged to its end: {error}.": "無法將這次執行判斷到最後：{error}。",
    "{error} Nothing will be saved; findings are shown at the end.": (
        "{error}不會儲存任何內容；診斷結果會在最後顯示。"
    ),
    "dtype {dtype} is not a floating-point type": "dtype {dtype} 不是浮點型別",
    "dtype {dtype} has no order": "dtype {dtype} 沒有大小順序",
    "layout {layout}": "layout 為 {layout}",
    "a sparse gradient on a device is not coalesced": "裝置上的稀疏梯度尚未合併（coalesce）",
    "a sparse gradient moves rows that no sample holds": "稀疏梯度只更新抽樣中沒有的少數列",
    "its running statistics differ in size or device": "它的移動統計量大小或裝置不一",
    "the step has put something else in its place, or nothing": (
        "這一步在它的位置放了別的東西，或什麼也沒留下"
    ),
    "a meta tensor holds no data": "meta 張量不含資料",
    "a nested tensor has no single shape": "巢狀張量（nested tensor）沒有單一形狀",
    "tensor subclass {name}": "張量子類別 {name}",
    "inside torch.func": "位於 torch.func 之內",
    "dtype {dtype} is too coarse": "dtype {dtype} 精度太低",
    "empty": "空張量",
    "its memory is not there at present": "其記憶體目前不存在",
    "`watch` was given {names}, so other models are left alone: a {kind} was seen.": (
        "`watch` 指定的是 {names}，因此不監看其他模型：看到了一個 {kind}。"
    ),
    "`traindx.log` takes each number with a name, and got a {kind} without one; it is left out. "
    "Write `traindx.log(val_loss=...)`.": (
        "`traindx.log` 的每個數值都需要名稱，卻收到一個沒有名稱的 {kind}；已略過。"
        "請寫成 `traindx.log(val_loss=...)`。"
    ),
    "`traindx.log` takes single numbers, and `{name}` is a {kind} that is none; it is left out. "
    "Give a float, an int or a tensor with one element.": (
        "`traindx.log` 只接受單一數值，而 `{name}` 是 {kind}，並非單一數值；已略過。"
        "請給 float、int，或只有一個元素的張量。"
    ),
    "its operands are kept elsewhere (checkpointing, offloading) or have changed since": (
        "它的運算元存放在別處（checkpointing、offloading），或之後有所改變"
    ),
    "it is written in a way that is not understood": "它的寫法無法辨認",
    "torch.compile is used: steps whose activations are measured run eagerly, so losses agree with "
    "those of a training without traindx to rounding only": (
        "使用了 torch.compile：量測活化值的步會以 eager 方式執行，"
        "因此損失與未使用 traindx 的訓練只在捨入誤差內一致"
    ),
    "Compiled activations are not measured: {reason}.": "不量測已編譯模型的活化值：{reason}。",
    "the forward pass draws random numbers": "前向傳播會抽取亂數",
    "random numbers are drawn between the steps, perhaps by the model": (
        "步與步之間抽取了亂數，可能是模型所為"
    ),
    "backward is called inside a compiled function": "backward 是在編譯過的函式中呼叫的",
    "the script sets torch.compile's stance itself": ("腳本自行設定了 torch.compile 的 stance"),
    "`{module}` draws random numbers": "`{module}` 會抽取亂數",
}
